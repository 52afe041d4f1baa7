#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace provider {

/// Faults for requests that are still to come, through a service that forwards no X-Fault.
class ArmedFaults {
 public:
  /// `list` for the next `count` requests whose path begins with `path`; those armed first, first.
  void arm(std::string list, std::string path, std::size_t count);
  void disarm() { armed_.clear(); }

  /// The list for one request, which uses it up; empty when none is armed for its path. The inbox
  /// takes only what was armed for it by name.
  std::string take(std::string_view path);

  std::string json() const;

 private:
  struct Armed {
    std::string list;
    std::string path;
    std::size_t left = 0;
  };

  std::deque<Armed> armed_;
};

}  // namespace provider
