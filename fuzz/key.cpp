// The key's field value. An accepted key has 1 to 255 printable bytes and means the same key when
// it is quoted; spaces around and parameters behind change nothing; each value has one reading,
// which the syntax options can only shut out; a refusal never repeats the value.
#include "fuzz/check.hpp"
#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"

#include <idem/key.hpp>
#include <idem/limits.hpp>

#include <algorithm>
#include <array>
#include <expected>
#include <string>

namespace idem::fuzz {
namespace {

using Key = std::expected<std::string, KeyError>;

Key parse(std::string_view value, KeySyntax syntax = KeySyntax::any, std::size_t bytes_min = 1) {
  const ExactBytes bytes(value);
  const std::array lines{bytes.view()};
  return parse_key(lines, {.syntax = syntax, .bytes_min = bytes_min});
}

bool gives(const Key& result, std::string_view key) { return result && *result == key; }

std::string in_quotes(std::string_view key) {
  std::string text = "\"";
  for (const char c : key) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

void check_accepted(std::string_view value, const std::string& key) {
  check(!key.empty() && key.size() <= limits::key_bytes_max, "a key is within its limits");
  check(is_printable(key), "a key is printable");
  check(gives(parse(in_quotes(key), KeySyntax::structured), key), "quoting keeps the key");
  check(gives(parse("  " + std::string(value) + ' '), key), "spaces around mean nothing");
  check(gives(parse(value, KeySyntax::any, key.size()), key), "the shortest allowed is allowed");
  const auto short_key = parse(value, KeySyntax::any, key.size() + 1);
  check(!short_key && short_key.error().code == KeyError::Code::too_short, "a lower limit holds");
  const std::array lines{value, value};
  const auto twice = parse_key(lines, {});
  check(!twice && twice.error().code == KeyError::Code::several_lines, "two lines are no key");
}

/// Exactly one of the two syntaxes reads what `any` reads.
void check_syntaxes(std::string_view value, const Key& any) {
  const auto structured = parse(value, KeySyntax::structured);
  const auto bare = parse(value, KeySyntax::bare);
  check(!structured || !bare, "no value has two readings");
  check(any.has_value() == (structured || bare), "the two syntaxes are all there are");
  if (structured) {
    check(gives(any, *structured), "quoted is read alike");
    const auto end = value.find_last_not_of(' ') + 1;
    check(gives(parse(std::string(value.substr(0, end)) + ";a=1;*b=?0"), *structured),
          "parameters mean nothing");
    check(gives(parse_string_item(value), *structured), "a quoted key is a string item");
  }
  if (bare) {
    check(gives(any, *bare), "bare is read alike");
    check(value.contains(*bare) && !parse_string_item(value), "a bare key is written as it is");
  }
}

}  // namespace

void key(std::string_view input) {
  const std::string value = with_runs(input);
  const Key any = parse(value);
  if (any) check_accepted(value, *any);
  check_syntaxes(value, any);
  // Everything printable can be sent as a key when it is quoted, up to the limit.
  if (is_printable(value) && !value.empty()) {
    const auto sent = parse(in_quotes(value));
    check(sent.has_value() == (value.size() <= limits::key_bytes_max), "length alone decides");
    check(gives(parse_string_item(in_quotes(value)), value), "a string item has no limit");
  }
}

}  // namespace idem::fuzz
