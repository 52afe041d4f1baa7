#pragma once

#include <string>
#include <string_view>

namespace idem {

/// Appends `text` (UTF-8) as a JSON string with its quotes and the escapes of RFC 8785 §3.2.2.2.
/// Canonical forms, and so fingerprints, have these.
void append_json_string(std::string& out, std::string_view text);

inline std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace idem
