#pragma once

#include <string>
#include <string_view>

/// The names of records that routes with `enforce: shadow` make: no enforced request finds one.
namespace idem {

/// Begins the operation of such a record. No route's name does.
inline constexpr std::string_view shadow_prefix = "shadow:";

inline bool is_shadow_operation(std::string_view operation) noexcept {
  return operation.starts_with(shadow_prefix);
}

inline std::string shadow_operation(std::string_view operation) {
  return std::string(shadow_prefix).append(operation);
}

/// The part of the operation in the record's name. With a control character, which no operation of
/// a route holds: so no other operation's record has this name.
inline std::string shadow_naming_part(std::string_view part) {
  return std::string("\x01shadow\x01").append(part);
}

}  // namespace idem
