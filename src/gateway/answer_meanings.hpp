#pragma once

#include "core/exchange/policy.hpp"

#include <string_view>
#include <vector>

namespace idem::gateway {

/// What decides about an answer without an `Idem-Outcome`.
enum class DecidedBy : std::uint8_t {
  proof,  ///< The status itself (protocol.md §11): no setting changes that.
  route,  ///< `statuses` or `errors`.
  preset,
};

/// Statuses from `first` to `last` that mean the same for the same reason.
struct AnswerMeaning {
  int first = 0;
  int last = 0;
  std::string_view outcome;  ///< "stored", "released" or "unknown".
  DecidedBy by = DecidedBy::preset;
};

/// All final statuses in their order. `retry_after`: of answers with such a field.
std::vector<AnswerMeaning> meanings_of(const AnswerPolicy& policy, bool retry_after);

}  // namespace idem::gateway
