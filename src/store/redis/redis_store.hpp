#pragma once

#include <idem/open_store.hpp>

#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace idem {

struct RedisOptions {
  /// For tests: the store's time, in place of the servers' own clocks.
  std::function<StoreTime()> clock{};
  /// Called with a sentence about each setting of the servers that may lose records. On the store's
  /// thread.
  std::function<void(const std::string&)> warn{};
  WhichStore which{};
  std::function<void(const OpenedStore&)> opened{};  ///< On the store's thread.
};

/// A store in Redis 7 or later: one server, one behind sentinels, or a cluster (url.hpp). A
/// reserve, a settling write and a replay take one round trip each.
///
/// It is as durable as its servers: with `appendonly yes` and `appendfsync always` an answered
/// write survives a crash of the server. Replication is asynchronous, so a failover to a replica
/// may lose the latest writes, and a retry of such a request runs again. The store refuses a server
/// that evicts. If it lost its records, by FLUSHALL or a restart without persistence, it admits no
/// new work until it is opened again.
///
/// Completions run on the store's thread. While a server is out of reach, the store answers calls
/// about its records `unavailable` at once. If a reply is lost, it repeats the call, and answers
/// `in_doubt` if that fails, too.
std::expected<std::unique_ptr<Store>, StoreError> open_redis(const std::string& url,
                                                             const IdentitySettings& settings,
                                                             const RedisOptions& options);

/// Parses the URL without connecting. The error is a sentence without a password.
std::expected<void, std::string> check_redis_url(const std::string& url);

}  // namespace idem
