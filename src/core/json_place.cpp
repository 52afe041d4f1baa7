#include "core/json_place.hpp"

#include "core/json_string.hpp"

#include <algorithm>
#include <charconv>

namespace idem {
namespace {

/// Over a text that is known to be JSON.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) { skip_space(); }

  char front() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  std::size_t at() const noexcept { return at_; }

  bool take(char c) {
    if (front() != c) return false;
    ++at_;
    skip_space();
    return true;
  }

  std::string take_string() {
    std::string value;
    const auto literal = scan_string(text_, at_);
    if (!literal || !decode_string(text_, *literal, value)) {
      at_ = text_.size();
      return {};
    }
    at_ = literal->end + 1;
    skip_space();
    return value;
  }

  std::string_view take_value() {
    const std::size_t begin = at_;
    std::size_t depth = 0;
    std::size_t end = at_;
    do {
      const char c = front();
      if (c == '"') {
        const auto literal = scan_string(text_, at_);
        at_ = literal ? literal->end : text_.size();
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') --depth;
      if (at_ < text_.size()) ++at_;
      end = at_;
      skip_space();
    } while (at_ < text_.size() && (depth > 0 || !is_end(front(), end)));
    return text_.substr(begin, end - begin);
  }

 private:
  // Of a number or a word its characters follow each other; of all else the value ends by itself.
  bool is_end(char next, std::size_t end) const noexcept {
    return next == ',' || next == '}' || next == ']' || next == ':' || end != at_ ||
           text_[end - 1] == '"' || text_[end - 1] == '}' || text_[end - 1] == ']';
  }

  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").contains(text_[at_])) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string unescaped(std::string_view token) {
  std::string text;
  for (std::size_t i = 0; i < token.size(); ++i) {
    if (token[i] == '~') {
      text += token[++i] == '0' ? '~' : '/';
    } else {
      text += token[i];
    }
  }
  return text;
}

std::optional<std::string_view> member(std::string_view object, std::string_view name) {
  Reader in(object);
  if (!in.take('{') || in.front() == '}') return std::nullopt;
  do {
    const std::string found = in.take_string();
    if (!in.take(':')) return std::nullopt;
    const std::string_view value = in.take_value();
    if (found == name) return value;
  } while (in.take(','));
  return std::nullopt;
}

std::optional<std::string_view> element(std::string_view array, std::string_view token) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
  const bool has_zeros = token.size() > 1 && token.front() == '0';
  if (error != std::errc{} || end != token.data() + token.size() || has_zeros) return std::nullopt;
  Reader in(array);
  if (!in.take('[') || in.front() == ']') return std::nullopt;
  for (std::size_t i = 0;; ++i) {
    const std::string_view value = in.take_value();
    if (i == index) return value;
    if (!in.take(',')) return std::nullopt;
  }
}

}  // namespace

bool is_json_pointer(std::string_view text) noexcept {
  if (!text.empty() && !text.starts_with('/')) return false;
  for (auto at = text.find('~'); at != text.npos; at = text.find('~', at + 1)) {
    if (text.substr(at + 1, 1) != "0" && text.substr(at + 1, 1) != "1") return false;
  }
  return true;
}

std::optional<std::string_view> json_at(std::string_view text, std::string_view pointer) {
  if (!is_json_pointer(pointer)) return std::nullopt;
  Reader whole(text);
  std::string_view value = whole.take_value();
  while (!pointer.empty()) {
    const auto end = std::min(pointer.find('/', 1), pointer.size());
    const std::string token = unescaped(pointer.substr(1, end - 1));
    pointer.remove_prefix(end);
    const auto inner = value.starts_with('[') ? element(value, token) : member(value, token);
    if (!inner) return std::nullopt;
    value = *inner;
  }
  return value;
}

std::string json_plain(std::string_view value) {
  if (!value.starts_with('"')) return std::string(value);
  return Reader(value).take_string();
}

}  // namespace idem
