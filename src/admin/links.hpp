#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace idem::admin {

/// Where the console links to: addresses of other programs' pages. Empty: it does not.
struct Links {
  static constexpr std::string_view trace_place = "{trace_id}";
  static constexpr std::string_view upstream_place = "{reference}";

  std::string trace{};     ///< Has trace_place.
  std::string upstream{};  ///< Has upstream_place, for the upstream's reference.
};

/// `address` with `value`, percent-encoded, at the first `place`. None where either is empty.
std::optional<std::string> filled(std::string_view address, std::string_view place,
                                  std::string_view value);

}  // namespace idem::admin
