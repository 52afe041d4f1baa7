#include "core/json/selection.hpp"

#include "core/bytes/json_string.hpp"
#include "core/json/checked_text.hpp"
#include "core/json/scalars.hpp"

#include <idem/assert.hpp>

#include <algorithm>
#include <optional>

namespace idem {

std::expected<std::size_t, std::string> JsonSelection::node_of(const std::string& pointer) {
  const auto parsed = JsonPointer::parse(pointer);
  if (!parsed) return std::unexpected(parsed.error());
  std::size_t at = 0;
  for (const std::string& token : parsed->tokens()) {
    const auto& children = nodes_[at].children;
    const auto known = std::ranges::find_if(
        children, [&](std::size_t child) { return nodes_[child].token == token; });
    if (known != children.end()) {
      at = *known;
      continue;
    }
    nodes_[at].children.push_back(nodes_.size());
    at = nodes_.size();
    nodes_.push_back({.token = token, .quoted = json_string(token)});
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
      return std::unexpected("\"\" excludes the whole body, so all bodies would look alike");
    }
    const auto node = selection.node_of(pointer);
    if (!node) return std::unexpected(node.error());
    selection.nodes_[*node].excluded = true;
  }
  return selection;
}

// Copies a form without the excluded values, and notes where the included ones are in the copy.
// Recursion follows the document's nesting, so limits::json_depth_max bounds it.
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
      copy_until(behind_value(text_, at_));
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
      if (object) name = text_.substr(at_, behind_string(text_, at_) - at_);
      const std::size_t child = object ? child_named(node, name) : child_at(node, index);
      const std::size_t value_at = object ? at_ + name.size() + 1 : at_;
      if (child != none && nodes_[child].excluded) {
        at_ = behind_value(text_, value_at);
        continue;
      }
      if (copy_.size() > first) copy_ += ',';
      copy_until(value_at);
      if (child == none) {
        copy_until(behind_value(text_, at_));
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

  // RFC 6901 §4: no leading zeros; `-` means behind the last element, where no value is.
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
  // Otherwise a mistyped pointer, or a new envelope, would make all bodies alike.
  if (!met) digest.add(walk.copy());
  return digest.finish();
}

std::vector<std::string> JsonSelection::found_in(std::string_view form) const {
  const Walk walk(*this, form);
  std::vector<std::string> found;
  for (std::size_t i = 0; i < include_.size(); ++i) {
    if (walk.included(i)) found.push_back(include_[i]);
  }
  return found;
}

}  // namespace idem
