#pragma once

#include "core/exchange/policy.hpp"

#include <idem/store.hpp>

#include <string_view>

/// What the records of shadow routes hold. They never are unknown, because nobody settles them: a
/// field of their own says what enforcement would not know.
namespace idem::gateway {

/// How the attempt of a request ended, as enforcement would see it.
enum class ShadowEnding : std::uint8_t {
  stored,
  not_kept,  ///< Stored without its body: it is a stream or too large, or the route keeps none.
  released_proven,
  released_declared,
  unknown,
};

/// What a complete answer means; `is_kept`: its body would be stored.
ShadowEnding ending_of(const AnswerFacts& facts, const AnswerPolicy& policy, bool is_kept) noexcept;

/// The call that ends the attempt so. Of an answer only its status is stored; 0: there was none.
StoreCall ending_call(const RecordId& id, const Attempt& attempt, ShadowEnding ending, int status);

/// The outcome of a reserve with a shadow record in place of the one that enforcement would have
/// found. Of a Replay, `body_stored` says whether it would be one.
ReserveOutcome as_enforced(ReserveOutcome outcome);

}  // namespace idem::gateway
