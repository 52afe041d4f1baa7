#pragma once

#include "store/postgres/connection.hpp"

#include <idem/store.hpp>

#include <mutex>

/// Whether what answers there now knows all that was told as this store.
namespace idem::postgres {

/// What a server says of its history. 0: it does not let this role see that.
struct ServerHistory {
  std::int64_t system = 0;    ///< Of its cluster: a standby has its primary's.
  std::int64_t timeline = 0;  ///< One more with each promotion.
  Fence fence = 0;            ///< The last one that it gave out.
};

/// Of the servers that answered this process as its store: the highest timeline and fence. A server
/// that was deposed and comes back, or was restored from a copy, has lower ones, and has forgotten
/// records: it is refused. What no process remembers is not noticed. Safe from any thread.
class Lineage {
 public:
  /// What a server must know that is asked from now on.
  Fence known_fence() const;
  std::int64_t timeline() const;

  /// Of an attempt that was granted, here or in a transaction of a caller's.
  void note(Fence fence);
  /// Those that a reply of the store's tells of.
  void note(const StoreResult& result);

  /// Why `server` is not to be used, a sentence; none: it is, and its history is noted. `known`:
  /// known_fence(), from before it was asked.
  std::optional<std::string> why_refused(const ServerHistory& server, Fence known);

 private:
  mutable std::mutex mutex_;
  ServerHistory highest_;
};

/// Asked of each new connection, in a statement of its own: not every server answers it.
extern const char* const server_history_sql;
/// `told`: the answer to that; `fence`: what the store says itself. Other failures than a refusal
/// are the connection's end, and seen by its next use.
ServerHistory history_of(const QueryResult& told, Fence fence);

}  // namespace idem::postgres
