#include "core/json/members.hpp"

#include "core/bytes/utf8.hpp"

#include <idem/assert.hpp>

#include <algorithm>
#include <limits>

namespace idem {
namespace {

std::uint32_t narrow(std::size_t position) noexcept {
  IDEM_ASSERT(position <= std::numeric_limits<std::uint32_t>::max());
  return static_cast<std::uint32_t>(position);
}

}  // namespace

JsonMembers::JsonMembers() {
  // Enough for a payment request, so that each is one allocation.
  objects_.reserve(16);
  members_.reserve(32);
  open_members_.reserve(32);
}

void JsonMembers::open_object(std::size_t written) {
  IDEM_ASSERT(open_count_ < open_.size());
  open_[open_count_++] = {.object = narrow(objects_.size()),
                          .members_begin = narrow(open_members_.size())};
  objects_.push_back({.begin = narrow(written)});
}

void JsonMembers::begin_member(std::string_view name, std::size_t source, std::size_t written) {
  OpenObject& open = open_[open_count_ - 1];
  if (open_members_.size() > open.members_begin && open.in_order) {
    open.in_order = utf16_less(open_members_.back().name, name);
  }
  open_members_.push_back({.name = name,
                           .source = narrow(source),
                           .begin = narrow(written),
                           .object = narrow(objects_.size())});
}

void JsonMembers::end_member(std::size_t written) { open_members_.back().end = narrow(written); }

std::optional<std::size_t> JsonMembers::close_object(std::size_t written) {
  IDEM_ASSERT(open_count_ > 0);
  const OpenObject open = open_[--open_count_];
  Object& object = objects_[open.object];
  object.end = narrow(written);
  object.next = narrow(objects_.size());
  const auto first = open_members_.begin() + open.members_begin;
  if (!open.in_order) {
    std::sort(first, open_members_.end(),
              [](const Member& a, const Member& b) { return utf16_less(a.name, b.name); });
    const auto twin =
        std::adjacent_find(first, open_members_.end(),
                           [](const Member& a, const Member& b) { return a.name == b.name; });
    if (twin != open_members_.end()) return std::max(twin->source, (twin + 1)->source);
    object.members_begin = narrow(members_.size());
    members_.insert(members_.end(), first, open_members_.end());
    object.members_end = narrow(members_.size());
  }
  open_members_.erase(first, open_members_.end());
  return {};
}

std::string JsonMembers::in_order(std::string written) const {
  IDEM_ASSERT(open_count_ == 0);
  if (members_.empty()) return written;

  // A level copies one stretch of the text; where an object out of order begins in it, a level for
  // that object's members goes first, one member after the other. Objects in order are plain text.
  struct Level {
    std::size_t at = 0;
    std::size_t end = 0;
    std::size_t object = 0;
    std::size_t member = 0;
    std::size_t members_end = 0;
  };
  std::array<Level, limits::json_depth_max + 1> levels;
  std::size_t depth = 0;
  levels[depth++] = {.end = written.size()};
  const auto start_member = [&](Level& level) {
    const Member& member = members_[level.member];
    level.at = member.begin;
    level.end = member.end;
    level.object = member.object;
  };

  std::string out;
  out.reserve(written.size());
  while (depth > 0) {
    Level& level = levels[depth - 1];
    const auto object_ahead = [&] {
      return level.object < objects_.size() && objects_[level.object].begin < level.end;
    };
    const auto comes_in_order = [](const Object& object) {
      return object.members_begin == object.members_end;
    };
    while (object_ahead() && comes_in_order(objects_[level.object])) ++level.object;
    if (object_ahead()) {
      const Object& object = objects_[level.object];
      out.append(written, level.at, object.begin + 1 - level.at);
      level.at = object.end - 1;  // the closing brace goes with what follows it
      level.object = object.next;
      IDEM_ASSERT(depth < levels.size());
      Level& members = levels[depth++];
      members = {.member = object.members_begin, .members_end = object.members_end};
      start_member(members);
      continue;
    }
    out.append(written, level.at, level.end - level.at);
    if (level.member + 1 < level.members_end) {
      out += ',';
      ++level.member;
      start_member(level);
    } else {
      --depth;
    }
  }
  return out;
}

}  // namespace idem
