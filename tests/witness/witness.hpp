#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace idem::test {

/// The contents of the file that the witness library shares with the test, which begins as
/// zeros.
struct Witnessed {
  struct Allocations {
    std::atomic<int> thread;  ///< Its id, as in /proc/PID/task.
    std::atomic<std::uint64_t> count;
  };
  struct Event {
    enum class Kind : std::uint32_t { none, synced, sent };
    Kind kind;
    std::array<char, 24> begins;  ///< Of what was sent.
    std::atomic<bool> written;
  };

  std::atomic<std::size_t> threads;
  std::array<Allocations, 64> allocations;
  std::atomic<std::size_t> events_begun;
  std::array<Event, 4096> events;
};

}  // namespace idem::test
