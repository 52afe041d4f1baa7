#include "core/json/scalars.hpp"

#include "core/json/checked_text.hpp"
#include "core/json/string.hpp"

#include <algorithm>
#include <charconv>

namespace idem {
namespace {

std::string name_at(std::string_view text, std::size_t quote) {
  std::string name;
  const auto literal = scan_string(text, quote);
  if (literal) (void)decode_string(text, *literal, name);
  return name;
}

// From the end of a member or an item to the beginning of the next one, or to the closing bracket.
std::size_t next_element(std::string_view text, std::size_t end) noexcept {
  const std::size_t at = behind_space(text, end);
  return text[at] == ',' ? behind_space(text, at + 1) : at;
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
    at = next_element(text, behind_value(text, at));
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
    at = next_element(text, behind_value(text, at));
  }
  return std::nullopt;
}

// RFC 6901 §4: `~01` is `~1` and not a slash. None: a tilde that escapes nothing.
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
    at = next_element(array, end);
  }
  return items;
}

std::optional<std::vector<JsonMember>> members_of(std::string_view object) {
  std::vector<JsonMember> members;
  std::size_t at = behind_space(object, 0);
  if (object[at] != '{') return std::nullopt;
  at = behind_space(object, at + 1);
  while (object[at] != '}') {
    const std::string_view name = object.substr(at, behind_string(object, at) - at);
    at = behind_space(object, at + name.size());
    at = behind_space(object, at + 1);  // The colon.
    const std::size_t end = behind_value(object, at);
    members.push_back({name, object.substr(at, end - at)});
    at = next_element(object, end);
  }
  return members;
}

}  // namespace idem
