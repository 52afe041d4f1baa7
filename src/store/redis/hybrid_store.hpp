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
  /// For tests on busy machines: the longest wait for a reply of the cache.
  Millis reply_max = limits::cache_reply_max;
  /// Called with a sentence when the cache becomes unusable, and when it is usable again. On a
  /// thread of the store's.
  std::function<void(const std::string&)> warn{};
};

/// `truth` decides; a Redis in front of it answers retries of completed requests, and of requests
/// that began a moment ago (protocol.md §20, cache.hpp). If the Redis fails, the store asks `truth`
/// instead; the Redis need not be there at all.
///
/// In all else as `truth`: durability, threads, errors.
std::expected<std::unique_ptr<Store>, StoreError> open_hybrid(std::unique_ptr<Store> truth,
                                                              const std::string& fast_url,
                                                              const HybridOptions& options);

}  // namespace idem
