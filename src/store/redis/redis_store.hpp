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
  /// Called with what the servers' settings would make them forget: sentences. On the store's
  /// thread.
  std::function<void(const std::string&)> warn{};
  WhichStore which{};
  std::function<void(const OpenedStore&)> opened{};  ///< On the store's thread.
};

/// A store in Redis 7 or later: one server, one behind sentinels, or a cluster (url.hpp). A reserve
/// and a settling write are one round trip each, and so is a replay.
///
/// It is as durable as the servers are: with `appendonly yes` and `appendfsync always` what one of
/// them answered survives its crash; a failover to a replica may lose what was written last, as
/// replication is asynchronous, and a retry of such a request runs again. Refused: a policy that
/// evicts. A store that lost its records, to FLUSHALL or to a restart without persistence, lets
/// nothing new begin until it is opened again.
///
/// Completions come on the store's thread. While a server is out of reach its records' calls are
/// answered `unavailable` at once; one whose answer was lost is asked again, and answered
/// `in_doubt` where that fails, too.
std::expected<std::unique_ptr<Store>, StoreError> open_redis(const std::string& url,
                                                             const IdentitySettings& settings,
                                                             const RedisOptions& options);

/// Whether a URL can be read; nothing is connected. The error is a sentence without a password.
std::expected<void, std::string> check_redis_url(const std::string& url);

}  // namespace idem
