#include "check/report/escape.hpp"

#include "core/bytes/hex.hpp"
#include "core/bytes/percent.hpp"
#include "core/bytes/utf8.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace idem::check {
namespace {

using Range = std::pair<char32_t, char32_t>;

// Control characters, those without a form (Unicode's Default_Ignorable_Code_Point, but for the
// variants of emoji), those that turn the direction of text, ends of lines that XML 1.1 and
// ECMAScript know, and what XML 1.0 does not allow.
constexpr std::array<Range, 15> invisible{{{0x00, 0x1F},
                                           {0x7F, 0x9F},
                                           {0xAD, 0xAD},
                                           {0x34F, 0x34F},
                                           {0x61C, 0x61C},
                                           {0x115F, 0x1160},
                                           {0x17B4, 0x17B5},
                                           {0x180B, 0x180F},
                                           {0x200B, 0x200F},
                                           {0x2028, 0x202E},
                                           {0x2060, 0x206F},
                                           {0xFDD0, 0xFDEF},
                                           {0xFEFF, 0xFEFF},
                                           {0xFFF0, 0xFFFB},
                                           {0xE0000, 0xE0FFF}}};

bool is_invisible(char32_t c) {
  // The last two of each plane are no characters.
  if ((c & 0xFFFE) == 0xFFFE) return true;
  return std::ranges::any_of(invisible, [c](Range r) { return c >= r.first && c <= r.second; });
}

char32_t code_point(std::string_view bytes) {
  constexpr std::array<unsigned char, 4> lead_mask{0x7F, 0x1F, 0x0F, 0x07};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  char32_t value = byte(0) & lead_mask[bytes.size() - 1];
  for (std::size_t i = 1; i < bytes.size(); ++i) value = (value << 6U) | (byte(i) & 0x3FU);
  return value;
}

/// "\x1b"
std::string byte_escape(char byte) { return "\\x" + hex_of({&byte, 1}); }

/// "\u{202e}"
std::string character_escape(char32_t c) {
  std::string hex;
  for (; c != 0; c >>= 4U) hex.insert(hex.begin(), hex_digits[c & 15U]);
  return "\\u{" + hex + "}";
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// The end of the run of blanks that begins at `at`.
std::size_t after_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

/// Gives the visible parts of `text` to `show`, and what stands for the others to `stand_in`.
template <class Show, class StandIn>
void read(std::string_view text, LineEnds ends, Show show, StandIn stand_in) {
  std::size_t at = ends == LineEnds::joined ? after_blanks(text, 0) : 0;
  while (at < text.size()) {
    const char c = text[at];
    if (ends == LineEnds::joined && is_blank(c)) {
      at = after_blanks(text, at);
      if (at < text.size()) show(std::string_view(" "));
      continue;
    }
    const bool is_crlf = c == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    if (ends == LineEnds::plain && is_crlf) {
      ++at;
      continue;
    }
    const std::size_t size = utf8_sequence(text, at);
    const auto bytes = text.substr(at, std::max<std::size_t>(size, 1));
    at += bytes.size();
    const bool stays = c == '\n' || c == '\t' || (c == '\r' && ends == LineEnds::kept);
    if (size == 0 || (size == 1 && is_invisible(static_cast<unsigned char>(c)) && !stays)) {
      stand_in(byte_escape(c));
    } else if (size > 1 && is_invisible(code_point(bytes))) {
      stand_in(character_escape(code_point(bytes)));
    } else {
      show(bytes);
    }
  }
}

void append_markup(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (c == '\r') {
      out += "&#13;";  // A parser would turn it into LF.
    } else {
      out += c;
    }
  }
}

}  // namespace

std::string printable(std::string_view text, LineEnds ends) {
  std::string out;
  out.reserve(text.size());
  const auto append = [&](std::string_view part) { out += part; };
  read(text, ends, append, append);
  return out;
}

std::string markup(std::string_view text, LineEnds ends) {
  std::string out;
  out.reserve(text.size());
  append_markup(out, printable(text, ends));
  return out;
}

std::string marked_markup(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  read(
      text, LineEnds::plain, [&](std::string_view part) { append_markup(out, part); },
      [&](const std::string& part) { out += "<i>" + part + "</i>"; });
  return out;
}

std::string uri_text(std::string_view text) {
  constexpr std::string_view allowed = "-._~:/?@!$&'()*+,;=";
  const std::size_t path = text.find('/', std::min(text.size(), text.find("//") + 2));
  const std::size_t fragment = text.find('#');
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool is_bracket = (c == '[' || c == ']') && at < path;  // Of an IPv6 address.
    if (is_letter_or_digit(c) || allowed.contains(c) || is_bracket || at == fragment ||
        escaped_byte(text, at) >= 0) {
      out += c;
    } else {
      append_escaped_byte(out, c);
    }
  }
  return out;
}

std::string_view beginning_of(std::string_view text, std::size_t bytes_max) noexcept {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  // A character has up to three bytes after its first one.
  for (int i = 0; i < 3 && end > 0; ++i) {
    if ((static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U) break;
    --end;
  }
  return text.substr(0, end);
}

std::string excerpt_of(std::string_view text, std::size_t bytes_max) {
  const auto shown = beginning_of(text, bytes_max);
  if (shown.size() == text.size()) return std::string(text);
  return std::string(shown) + "\n[" + std::to_string(text.size() - shown.size()) + " more bytes]";
}

}  // namespace idem::check
