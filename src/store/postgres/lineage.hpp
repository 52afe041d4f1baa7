#pragma once

#include "store/postgres/connection.hpp"

#include <idem/store.hpp>

#include <mutex>

/// Whether a server still has everything that this store has answered.
namespace idem::postgres {

/// A server's history. 0 or none: this role may not see it.
struct ServerHistory {
  std::int64_t system = 0;       ///< Its cluster's identifier, which a standby shares.
  std::int64_t timeline = 0;     ///< One more with each promotion.
  std::optional<Fence> fence{};  ///< The last one that it gave out.
};

/// The highest timeline and fence of the servers that this process has reached. A deposed primary
/// that comes back, or a server restored from a copy, has lower ones and has forgotten records:
/// this refuses it. No process can notice what none remembers. Safe from any thread.
class Lineage {
 public:
  /// A server that is asked from now on must have given out this fence.
  std::optional<Fence> known_fence() const;
  std::int64_t timeline() const;

  /// The fence of a granted attempt, here or in a caller's transaction.
  void note(Fence fence);
  /// The fence in a result of the store, if there is one.
  void note(const StoreResult& result);

  /// Why `server` must not be used, a sentence; none: it may, and its history is noted. `known`:
  /// known_fence(), read before the server was asked.
  std::optional<std::string> why_refused(const ServerHistory& server, std::optional<Fence> known);

 private:
  mutable std::mutex mutex_;
  ServerHistory highest_;
};

/// Sent on each new connection, as a statement of its own: not every server permits it.
extern const char* const server_history_sql;
/// From the reply to that; `fence`: the last one that the store gave out. Other failures than a
/// refusal end the connection, and its next use shows it.
ServerHistory history_of(const QueryResult& reply, std::optional<Fence> fence);

}  // namespace idem::postgres
