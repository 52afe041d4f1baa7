#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "message.hpp"

namespace provider {

/// The provider's own idempotency, as of real ones: it recognises a key for a while. With a window
/// of 0 it executes every request.
class Deduplication {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// None: execute the request, and call finished() afterwards in any case. Otherwise the answer
  /// instead: the kept one, 409 while the first is under way, 422 for another request.
  std::optional<Reply> arrive(const std::string& key, std::uint64_t digest, Time now);
  /// Keeps the answer of the request under way with `key`; without one, the next request executes
  /// too.
  void keep(const std::string& key, const Reply& reply, Time now);
  void finished(const std::string& key);
  /// Forgets all answers; requests under way stay.
  void clear();

  std::chrono::milliseconds window{0};

 private:
  struct Entry {
    std::uint64_t digest = 0;
    bool under_way = true;
    std::optional<Reply> kept{};
    Time until{};
  };

  std::map<std::string, Entry> entries_;
};

}  // namespace provider
