#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

/// Parts of a message head as text.
namespace idem::http {

inline void append_number(std::string& out, std::uint64_t number) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

/// One field line. The caller has checked that `value` holds no line end.
inline void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += name;
  out += ": ";
  out += value;
  out += "\r\n";
}

}  // namespace idem::http
