#include "core/json/scalars.hpp"

#include "core/json/string.hpp"

#include <algorithm>
#include <charconv>

namespace idem {
namespace {

std::size_t behind_space(std::string_view text, std::size_t at) noexcept {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

std::size_t behind_string(std::string_view text, std::size_t at) noexcept {
  for (++at; text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

// Of a checked text: behind the value that begins at `at`, without the space that follows it.
std::size_t behind_value(std::string_view text, std::size_t at) noexcept {
  std::size_t depth = 0;
  for (;;) {
    const char c = text[at];
    if (c == '"') {
      at = behind_string(text, at);
    } else if (c == '{' || c == '[') {
      ++depth;
      ++at;
      continue;
    } else if (c == '}' || c == ']') {
      --depth;
      ++at;
    } else if (depth == 0) {
      return std::min(text.find_first_of(" \t\r\n,]}", at), text.size());
    } else {
      ++at;
    }
    if (depth == 0) return at;
  }
}

std::string name_at(std::string_view text, std::size_t quote) {
  std::string name;
  const auto literal = scan_string(text, quote);
  if (literal) (void)decode_string(text, *literal, name);
  return name;
}

// Where the member's value begins in the object at `at`.
std::optional<std::size_t> member_of(std::string_view text, std::size_t at,
                                     const std::string& name) {
  at = behind_space(text, at + 1);
  while (text[at] != '}') {
    const bool found = name_at(text, at) == name;
    at = behind_space(text, behind_string(text, at));
    at = behind_space(text, at + 1);  // The colon.
    if (found) return at;
    at = behind_space(text, behind_value(text, at));
    if (text[at] == ',') at = behind_space(text, at + 1);
  }
  return std::nullopt;
}

// RFC 6901 §4: digits without a leading zero.
std::optional<std::size_t> index_of(const std::string& token) {
  std::size_t index = 0;
  const char* const end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, index);
  if (error != std::errc{} || stop != end) return std::nullopt;
  if (token.size() > 1 && token.front() == '0') return std::nullopt;
  return index;
}

std::optional<std::size_t> item_of(std::string_view text, std::size_t at, std::size_t index) {
  at = behind_space(text, at + 1);
  for (; text[at] != ']'; --index) {
    if (index == 0) return at;
    at = behind_space(text, behind_value(text, at));
    if (text[at] == ',') at = behind_space(text, at + 1);
  }
  return std::nullopt;
}

// `~1` and `~0`; none: a tilde that escapes nothing.
std::optional<std::string> unescape(std::string_view token) {
  std::string text;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] != '~') {
      text += token[i];
      continue;
    }
    ++i;
    if (i == token.size() || (token[i] != '0' && token[i] != '1')) return std::nullopt;
    text += token[i] == '0' ? '~' : '/';
  }
  return text;
}

}  // namespace

std::expected<JsonPointer, std::string> JsonPointer::parse(std::string_view text) {
  JsonPointer pointer;
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = std::min(rest.find('/', 1), rest.size());
    auto token = rest.front() == '/' ? unescape(rest.substr(1, end - 1)) : std::nullopt;
    if (!token) {
      return std::unexpected('"' + std::string(text) +
                             "\" is no JSON Pointer; write /name/0/other, with ~1 for a slash and "
                             "~0 for a tilde in a name");
    }
    pointer.tokens_.push_back(std::move(*token));
    rest.remove_prefix(end);
  }
  return pointer;
}

std::optional<std::string_view> JsonPointer::find(std::string_view json) const {
  std::optional<std::size_t> at = behind_space(json, 0);
  for (const std::string& token : tokens_) {
    const char kind = json[*at];
    const auto index = kind == '[' ? index_of(token) : std::nullopt;
    if (kind == '{') {
      at = member_of(json, *at, token);
    } else {
      at = index ? item_of(json, *at, *index) : std::nullopt;
    }
    if (!at) return std::nullopt;
  }
  return json.substr(*at, behind_value(json, *at) - *at);
}

std::expected<void, JsonError> check_json(std::string_view text) {
  const auto form = fingerprint_form(text);
  if (!form) return std::unexpected(form.error());
  return {};
}

std::optional<std::string> scalar_of(std::string_view value) {
  switch (value.front()) {
    case '"':
      return name_at(value, 0);
    case '{':
    case '[':
    case 'n':
      return std::nullopt;
    default:
      return std::string(value);
  }
}

std::optional<std::vector<std::string_view>> items_of(std::string_view array) {
  std::vector<std::string_view> items;
  std::size_t at = behind_space(array, 0);
  if (array[at] != '[') return std::nullopt;
  at = behind_space(array, at + 1);
  while (array[at] != ']') {
    const std::size_t end = behind_value(array, at);
    items.push_back(array.substr(at, end - at));
    at = behind_space(array, end);
    if (array[at] == ',') at = behind_space(array, at + 1);
  }
  return items;
}

}  // namespace idem
