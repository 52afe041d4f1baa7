#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Shorthands of scalars.hpp for a JSON Pointer that is text and is used once.
namespace idem {

/// True for a JSON Pointer (RFC 6901 §3); the empty one is the whole document.
bool is_json_pointer(std::string_view text);

/// The bytes in `json` of the value at `pointer`. check_json() has accepted `json`. None: there is
/// no such value.
std::optional<std::string_view> json_at(std::string_view json, std::string_view pointer);

/// A string's value without quotes and escapes; any other value as it is written.
std::string json_plain(std::string_view value);

}  // namespace idem
