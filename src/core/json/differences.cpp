#include "core/json/differences.hpp"

#include "core/json/checked_text.hpp"
#include "core/json/scalars.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace idem {
namespace {

using std::string_view;

std::string token_of(string_view quoted) {
  std::string token;
  for (const char c : scalar_of(quoted).value_or("")) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

/// Characters of UTF-8: all bytes but those that continue one.
std::size_t characters_of(string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string counted(std::size_t count, string_view one) {
  return std::to_string(count) + ' ' + std::string(one) + (count == 1 ? "" : "s");
}

// Recursion follows the documents' nesting, so limits::json_depth_max bounds it.
class Comparison {
 public:
  Comparison(std::size_t most, const std::function<bool(const std::string&)>& counts)
      : most_(most), counts_(counts) {}

  void compare(const std::string& pointer, std::optional<string_view> before,
               std::optional<string_view> after) {
    if (before == after || found_.size() >= most_ || !counts_(pointer)) return;
    if (before && after && before->front() == '{' && after->front() == '{') {
      return compare_members(pointer, *before, *after);
    }
    if (before && after && before->front() == '[' && after->front() == '[') {
      return compare_items(pointer, *before, *after);
    }
    found_.push_back({pointer, shown(before), shown(after)});
  }

  std::vector<JsonDifference> take() { return std::move(found_); }

 private:
  using Both = std::pair<std::optional<string_view>, std::optional<string_view>>;

  static std::string shown(std::optional<string_view> value) {
    return value ? masked(*value) : "absent";
  }

  void compare_members(const std::string& pointer, string_view before, string_view after) {
    std::map<string_view, Both> all;
    const auto old = members_of(before).value_or(std::vector<JsonMember>());
    const auto now = members_of(after).value_or(std::vector<JsonMember>());
    for (const JsonMember& member : old) all[member.name].first = member.value;
    for (const JsonMember& member : now) all[member.name].second = member.value;
    for (const auto& [name, both] : all) {
      if (both.first == both.second) continue;  // Names may be long: no pointer is made in vain.
      if (found_.size() >= most_) return;
      compare(pointer + '/' + token_of(name), both.first, both.second);
    }
  }

  void compare_items(const std::string& pointer, string_view before, string_view after) {
    const auto old = items_of(before).value_or(std::vector<string_view>());
    const auto now = items_of(after).value_or(std::vector<string_view>());
    for (std::size_t i = 0; i < std::max(old.size(), now.size()); ++i) {
      const auto before_it = i < old.size() ? std::optional(old[i]) : std::nullopt;
      const auto after_it = i < now.size() ? std::optional(now[i]) : std::nullopt;
      if (before_it == after_it) continue;
      if (found_.size() >= most_) return;
      compare(pointer + '/' + std::to_string(i), before_it, after_it);
    }
  }

  std::size_t most_;
  const std::function<bool(const std::string&)>& counts_;
  std::vector<JsonDifference> found_;
};

}  // namespace

std::string masked(string_view form) {
  switch (form.front()) {
    case '{':
      return "object, " + counted(members_of(form)->size(), "member");
    case '[':
      return "array, " + counted(items_of(form)->size(), "item");
    case '"':
      return "string, " + counted(characters_of(scalar_of(form).value_or("")), "character");
    case 't':
    case 'f':
      return "boolean";
    case 'n':
      return "null";
    default:
      return "number";
  }
}

std::vector<JsonDifference> json_differences(
    string_view before, string_view after, std::size_t most,
    const std::function<bool(const std::string&)>& counts) {
  Comparison comparison(most, counts);
  comparison.compare("", before, after);
  return comparison.take();
}

std::vector<WithoutMember> without_each_member(string_view form, std::size_t most) {
  std::vector<WithoutMember> all;
  const auto read = members_of(form);
  if (!read || read->size() > most) return all;
  const std::vector<JsonMember>& members = *read;
  for (std::size_t left_out = 0; left_out < members.size(); ++left_out) {
    std::string text = "{";
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i == left_out) continue;
      if (text.size() > 1) text += ',';
      text.append(members[i].name).append(":").append(members[i].value);
    }
    const JsonMember& member = members[left_out];
    all.push_back({'/' + token_of(member.name), member.value, text + '}'});
  }
  return all;
}

}  // namespace idem
