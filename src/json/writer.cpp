#include "json/writer.hpp"

#include "core/bytes/json_string.hpp"
#include "core/bytes/utf8.hpp"

#include <charconv>

namespace idem::json {
namespace {

std::string as_utf8(std::string_view text) {
  std::string valid;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = utf8_sequence(text, at);
    if (bytes == 0) {
      append_utf8(valid, 0xFFFD);
    } else {
      valid.append(text.substr(at, bytes));
    }
    at += bytes == 0 ? 1 : bytes;
  }
  return valid;
}

}  // namespace

void Writer::name(std::string_view text) {
  separate();
  append_json_string(out_, text);
  out_ += ':';
  needs_comma_ = false;
}

void Writer::text(std::string_view value) {
  separate();
  if (is_utf8(value)) {
    append_json_string(out_, value);
  } else {
    append_json_string(out_, as_utf8(value));
  }
  needs_comma_ = true;
}

void Writer::real(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  literal({text, static_cast<std::size_t>(end - text)});
}

void Writer::literal(std::string_view value) {
  separate();
  out_ += value;
  needs_comma_ = true;
}

void Writer::open(char bracket) {
  separate();
  out_ += bracket;
  needs_comma_ = false;
}

void Writer::close(char bracket) {
  out_ += bracket;
  needs_comma_ = true;
}

void Writer::separate() {
  if (needs_comma_) out_ += ',';
  needs_comma_ = false;
}

}  // namespace idem::json
