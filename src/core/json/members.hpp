#pragma once

#include <idem/limits.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem {

/// Records, while a JSON text is written in source order, where each object and its members are in
/// it; in_order() then puts the members into RFC 8785's order. Names are sorted, never hashed: an
/// attacker chooses them. Two passes over the text whatever the nesting; positions have 32 bits to
/// keep the memory per member small.
class JsonMembers {
 public:
  JsonMembers();

  /// `written`: the place of the object's brace in the text that is being written.
  void open_object(std::size_t written);

  /// `name` is the decoded name and outlives this object; `source` is its place in the source.
  void begin_member(std::string_view name, std::size_t source, std::size_t written);

  /// `written`: behind the value.
  void end_member(std::size_t written);

  /// `written`: behind the closing brace. Returns, if two members have one name, the place of the
  /// later one in the source; nothing may be called after that.
  std::optional<std::size_t> close_object(std::size_t written);

  /// The text with every object's members in order.
  std::string in_order(std::string written) const;

 private:
  struct Member {
    std::string_view name;
    std::uint32_t source = 0;
    std::uint32_t begin = 0;  // of `"name":value` in the text
    std::uint32_t end = 0;
    std::uint32_t object = 0;  // the first object, if any, that begins inside the member
  };
  struct Object {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint32_t members_begin = 0;  // in members_; none when it came in order
    std::uint32_t members_end = 0;
    std::uint32_t next = 0;  // the first object that begins behind this one
  };
  struct OpenObject {
    std::uint32_t object = 0;
    std::uint32_t members_begin = 0;  // in open_members_
    bool in_order = true;
  };

  std::vector<Object> objects_;  // by where they begin
  std::vector<Member> members_;  // of closed objects that came out of order, sorted
  std::vector<Member> open_members_;
  std::array<OpenObject, limits::json_depth_max> open_{};
  std::size_t open_count_ = 0;
};

}  // namespace idem
