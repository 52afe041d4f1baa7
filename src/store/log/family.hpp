#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace idem::segments {

/// What lies together, in order of its keys. Numbers in keys are big-endian, so that they order.
enum class Family : std::uint8_t {
  meta,      ///< name -> value with a checksum
  segments,  ///< number of a file of versions -> bytes of those that are present
  due,       ///< moment, place -> the ids and places of the versions that are due then
  work,      ///< the few records that a client, a worker or an operator has to come back to
  requests,  ///< record id -> stored request
  evidence,  ///< record id, number -> line
  journals,  ///< name, number -> line
  usage,     ///< scope -> usage
};
inline constexpr std::size_t family_count = 8;
/// In the order of Family.
inline constexpr std::array<const char*, family_count> family_names{
    "default", "segments", "due", "work", "requests", "evidence", "journals", "usage"};

/// A set of them.
class Families {
 public:
  constexpr Families() noexcept = default;
  explicit constexpr Families(std::uint64_t bits) noexcept : bits_(bits) {}

  static constexpr Families all() noexcept {
    return Families((std::uint64_t{1} << family_count) - 1);
  }

  constexpr bool has(Family family) const noexcept { return (bits_ & bit(family)) != 0; }
  constexpr bool is_empty() const noexcept { return bits_ == 0; }
  constexpr void add(Family family) noexcept { bits_ |= bit(family); }
  constexpr void remove(Family family) noexcept { bits_ &= ~bit(family); }
  constexpr Families both(const Families& other) const noexcept {
    return Families(bits_ & other.bits_);
  }
  constexpr Families without(const Families& other) const noexcept {
    return Families(bits_ & ~other.bits_);
  }
  constexpr std::uint64_t bits() const noexcept { return bits_; }
  bool operator==(const Families&) const = default;

  /// For people: "stored requests, evidence".
  std::string text() const;

 private:
  static constexpr std::uint64_t bit(Family family) noexcept {
    return std::uint64_t{1} << static_cast<std::uint8_t>(family);
  }
  std::uint64_t bits_ = 0;
};

/// Those that can be made anew from the table of ids and the versions. The others are nowhere else.
inline constexpr Families derived_families = [] {
  Families derived;
  for (const Family one : {Family::segments, Family::due, Family::work, Family::usage}) {
    derived.add(one);
  }
  return derived;
}();

/// Those without which a recovery makes a store all the same: no answer needs them.
inline constexpr Families recovered_without = [] {
  Families without;
  without.add(Family::evidence);
  without.add(Family::journals);
  return without;
}();

/// For people.
std::string_view words_of(Family family) noexcept;

}  // namespace idem::segments
