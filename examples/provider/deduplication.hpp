#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "message.hpp"

namespace provider {

/// The provider's own idempotency, as real ones have it: for a while it knows a key again. With a
/// window of 0 it knows nothing, and every request is carried out.
class Deduplication {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Nothing: carry it out, and say finished() afterwards, whatever came of it. Else the answer in
  /// its place: the kept one, 409 while the first is under way, 422 when it is another request.
  std::optional<Reply> arrive(const std::string& key, std::uint64_t digest, Time now);
  /// The answer of what is being carried out under `key`; without one, the next request is carried
  /// out too.
  void keep(const std::string& key, const Reply& reply, Time now);
  void finished(const std::string& key);
  /// Forgets all answers; who is under way stays.
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
