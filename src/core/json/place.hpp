#pragma once

#include <optional>
#include <string>
#include <string_view>

/// json_scalars.hpp for who has a pointer as text and looks once.
namespace idem {

/// RFC 6901 §3; the empty one is the whole document.
bool is_json_pointer(std::string_view text);

/// The bytes of the value that `pointer` points at, as they stand in `json`, which check_json()
/// has taken. None: there is no such value.
std::optional<std::string_view> json_at(std::string_view json, std::string_view pointer);

/// What a scalar's bytes say: a string without quotes and escapes, anything else as it is written.
std::string json_plain(std::string_view value);

}  // namespace idem
