#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace idem {

/// True for a JSON Pointer (RFC 6901 §3); the empty one is the whole document.
bool is_json_pointer(std::string_view text) noexcept;

/// The bytes of the value that `pointer` points at, as they stand in `text`, which canonicalize()
/// has taken. None: there is no such value. Numbers keep their digits, and all of it its spelling.
std::optional<std::string_view> json_at(std::string_view text, std::string_view pointer);

/// What a scalar's bytes say: a string without quotes and escapes, anything else as it is written.
std::string json_plain(std::string_view value);

}  // namespace idem
