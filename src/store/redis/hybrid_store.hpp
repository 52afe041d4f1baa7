#pragma once

#include <idem/limits.hpp>
#include <idem/store.hpp>

#include <expected>
#include <functional>
#include <memory>
#include <string>

namespace idem {

struct HybridOptions {
  /// For tests: the deciding store's clock, in place of an estimate of it.
  std::function<StoreTime()> clock{};
  /// For tests that must not depend on how busy the machine is: what the cache may take for an
  /// answer.
  Millis reply_max = limits::cache_reply_max;
  /// Called when the cache cannot be used any more, and when it can again: sentences. On a thread
  /// of the store's.
  std::function<void(const std::string&)> warn{};
};

/// `truth` decides; a Redis in front of it answers retries of what has completed, and of what was
/// begun a moment ago (protocol.md §20, cache.hpp). Whatever happens to the Redis, `truth` is asked
/// instead. It need not be there, now or ever.
///
/// As `truth` in all else: durability, threads, errors.
std::expected<std::unique_ptr<Store>, StoreError> open_hybrid(std::unique_ptr<Store> truth,
                                                              const std::string& fast_url,
                                                              const HybridOptions& options);

}  // namespace idem
