#pragma once

#include "loop/loop.hpp"

#include <optional>

namespace idem {

/// Lets one coroutine wait for many of the same loop: set `left`, spawn so many, each of which ends
/// with one_done(), and wait for all(). Loop's thread only.
struct Gathering {
  std::size_t left = 0;
  std::optional<Resumption<bool>> waiting{};

  /// One is done; the last one wakes the waiting coroutine.
  void one_done(Loop& loop) {
    if (--left > 0 || !waiting) return;
    // Posted: this step belongs to the coroutine that has just finished.
    loop.post([woken = std::move(*waiting)]() mutable { woken(true); });
  }

  /// Waits for the last one. Awaited once.
  Task<void> all() {
    if (left == 0) co_return;
    const auto start = [this](Resumption<bool> done) { waiting.emplace(std::move(done)); };
    auto suspended = suspend<bool>(start);
    co_await suspended;
  }
};

}  // namespace idem
