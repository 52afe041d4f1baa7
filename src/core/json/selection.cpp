#include "core/json/selection.hpp"

#include "core/json/string.hpp"

#include <idem/assert.hpp>

#include <algorithm>
#include <optional>

namespace idem {
namespace {

// RFC 6901 §4: `~1` first, so that `~01` is `~1` and not a slash. None: a tilde that escapes
// nothing.
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

// Behind a canonical string that begins at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) noexcept {
  for (++at; text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at + 1;
}

// Behind a canonical value that begins at `at`.
std::size_t end_of_value(std::string_view text, std::size_t at) noexcept {
  std::size_t depth = 0;
  do {
    const char c = text[at];
    if (c == '"') {
      at = end_of_string(text, at);
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++at;
  } while (at < text.size() &&
           (depth > 0 || (text[at] != ',' && text[at] != '}' && text[at] != ']')));
  return at;
}

}  // namespace

std::expected<std::size_t, std::string> JsonSelection::node_of(const std::string& pointer) {
  std::size_t at = 0;
  std::string_view rest = pointer;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('/', 1), rest.size());
    const auto token = rest.front() == '/' ? unescape(rest.substr(1, end - 1)) : std::nullopt;
    if (!token) {
      return std::unexpected('"' + pointer +
                             "\" is no JSON Pointer; write /name/0/other, with ~1 for a slash and "
                             "~0 for a tilde in a name");
    }
    rest.remove_prefix(end);
    const auto& children = nodes_[at].children;
    const auto known = std::ranges::find_if(
        children, [&](std::size_t child) { return nodes_[child].token == *token; });
    if (known != children.end()) {
      at = *known;
      continue;
    }
    std::string quoted;
    append_quoted(quoted, *token);
    nodes_[at].children.push_back(nodes_.size());
    at = nodes_.size();
    nodes_.push_back({.token = *token, .quoted = std::move(quoted)});
  }
  return at;
}

std::expected<JsonSelection, std::string> JsonSelection::parse(
    std::span<const std::string> include, std::span<const std::string> exclude) {
  JsonSelection selection;
  for (const std::string& pointer : include) {
    const auto node = selection.node_of(pointer);
    if (!node) return std::unexpected(node.error());
    selection.nodes_[*node].included = selection.include_.size();
    selection.include_.push_back(pointer);
  }
  for (const std::string& pointer : exclude) {
    if (pointer.empty()) {
      return std::unexpected("\"\" excludes the whole body, so that all would look alike");
    }
    const auto node = selection.node_of(pointer);
    if (!node) return std::unexpected(node.error());
    selection.nodes_[*node].excluded = true;
  }
  return selection;
}

// Copies a form without what is excluded, and notes where in the copy lies what is included. A
// level of recursion is a level of the document, so limits::json_depth_max bounds it.
class JsonSelection::Walk {
 public:
  struct Range {
    std::size_t begin = none;
    std::size_t end = none;
  };

  Walk(const JsonSelection& selection, std::string_view form)
      : nodes_(selection.nodes_), text_(form), included_(selection.include_.size()) {
    copy_.reserve(form.size());
    value(0);
    IDEM_ASSERT(at_ == text_.size());
  }

  std::string_view copy() const noexcept { return copy_; }
  std::optional<std::string_view> included(std::size_t pointer) const noexcept {
    const Range range = included_[pointer];
    if (range.begin == none) return std::nullopt;
    return copy().substr(range.begin, range.end - range.begin);
  }

 private:
  void value(std::size_t node) {
    const std::size_t begin = copy_.size();
    if (nodes_[node].children.empty() || (text_[at_] != '{' && text_[at_] != '[')) {
      copy_until(end_of_value(text_, at_));
    } else {
      members(node);
    }
    if (nodes_[node].included != none) included_[nodes_[node].included] = {begin, copy_.size()};
  }

  void members(std::size_t node) {
    const bool object = text_[at_] == '{';
    copy_until(at_ + 1);
    const std::size_t first = copy_.size();
    for (std::size_t index = 0; text_[at_] != '}' && text_[at_] != ']'; ++index) {
      if (text_[at_] == ',') ++at_;
      std::string_view name;
      if (object) name = text_.substr(at_, end_of_string(text_, at_) - at_);
      const std::size_t child = object ? child_named(node, name) : child_at(node, index);
      const std::size_t value_at = object ? at_ + name.size() + 1 : at_;
      if (child != none && nodes_[child].excluded) {
        at_ = end_of_value(text_, value_at);
        continue;
      }
      if (copy_.size() > first) copy_ += ',';
      copy_until(value_at);
      if (child == none) {
        copy_until(end_of_value(text_, at_));
      } else {
        value(child);
      }
    }
    copy_until(at_ + 1);
  }

  std::size_t child_named(std::size_t node, std::string_view quoted) const noexcept {
    for (const std::size_t child : nodes_[node].children) {
      if (nodes_[child].quoted == quoted) return child;
    }
    return none;
  }

  // RFC 6901 §4: without leading zeros; `-` is behind the last element, so nothing is there.
  std::size_t child_at(std::size_t node, std::size_t index) const {
    const std::string token = std::to_string(index);
    for (const std::size_t child : nodes_[node].children) {
      if (nodes_[child].token == token) return child;
    }
    return none;
  }

  void copy_until(std::size_t end) {
    copy_.append(text_, at_, end - at_);
    at_ = end;
  }

  const std::vector<Node>& nodes_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::string copy_;
  std::vector<Range> included_;
};

Digest JsonSelection::digest(std::string_view form) const {
  const Walk walk(*this, form);
  if (include_.empty()) return sha256(walk.copy());
  FramedDigest digest;
  bool met = false;
  for (std::size_t i = 0; i < include_.size(); ++i) {
    const auto value = walk.included(i);
    digest.add(include_[i]);
    digest.add_number(value ? 1 : 0);
    if (value) digest.add(*value);
    met = met || value.has_value();
  }
  // Or a mistyped pointer and a new envelope would make all bodies alike.
  if (!met) digest.add(walk.copy());
  return digest.finish();
}

}  // namespace idem
