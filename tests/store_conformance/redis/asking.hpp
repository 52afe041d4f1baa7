#pragma once

#include "store/redis/redis_store.hpp"
#include "store_conformance/asking.hpp"
#include "support/redis.hpp"

/// Stores in Redis by the servers' own clocks, for tests that need more than conformance.
namespace idem::test {

using Opened = std::expected<std::unique_ptr<Store>, StoreError>;

inline std::unique_ptr<Store> open_at(const std::string& url) {
  auto store = open_redis(url, test_settings(), {});
  if (store) return std::move(*store);
  ADD_FAILURE() << store.error().detail;
  std::abort();
}

}  // namespace idem::test
