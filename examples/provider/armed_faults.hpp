#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace provider {

/// Faults for requests that are still to come, through a service that forwards no X-Fault.
class ArmedFaults {
 public:
  /// `list` for the next `count` requests whose path begins with `path`; those armed first, first.
  void arm(std::string list, std::string path, std::size_t count);
  /// `list` for each request whose path begins with `path`, with this chance. Each has dice of its
  /// own, thrown from `seed` on.
  void arm_by_chance(std::string list, std::string path, double chance, std::uint64_t seed);
  void disarm();

  /// The faults for one request, which uses them up; empty if none is armed for its path. Without a
  /// counted list, all lists armed by chance that hit apply together. The inbox has only the faults
  /// that were armed for it by name.
  std::string take(std::string_view path);

  std::string json() const;

 private:
  struct Armed {
    std::string list;
    std::string path;
    std::size_t left = 0;
  };
  struct Likely {
    std::string list;
    std::string path;
    double chance = 0;
    std::mt19937_64 dice;
    std::size_t taken = 0;
  };

  std::deque<Armed> armed_;
  std::vector<Likely> likely_;
};

}  // namespace provider
