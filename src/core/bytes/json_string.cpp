#include "core/bytes/json_string.hpp"

#include "core/bytes/hex.hpp"

namespace idem {
namespace {

// The letter after the backslash for `c` by RFC 8785, or 0 for `\u00xx`.
char escape_letter(char c) noexcept {
  switch (c) {
    case '"':
      return '"';
    case '\\':
      return '\\';
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') {
      out += c;
    } else if (const char letter = escape_letter(c); letter != 0) {
      out += {'\\', letter};
    } else {
      out += "\\u00";
      append_hex(out, {&c, 1});
    }
  }
  out += '"';
}

}  // namespace idem
