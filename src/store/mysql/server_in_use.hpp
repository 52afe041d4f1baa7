#pragma once

#include <idem/record.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace idem::mysql {

/// An attempt that a server has confirmed: it must not be missing on the next server.
struct KnownAttempt {
  RecordId id;
  Fence fence = 0;
};

/// Why a server without `known` is refused, for people.
std::string why_lost(const KnownAttempt& known);

/// Which of the URL's servers the store uses. The store's loop decides; the sessions of services
/// follow: on two servers that both take writes, a key could run once on each. Safe from any
/// thread.
class ServerInUse {
 public:
  struct Now {
    std::size_t host = 0;    ///< Of the URL's.
    std::uint64_t turn = 1;  ///< One more with each change of the server.
    bool is_left = false;    ///< It takes no writes, and the next one is not compared yet.
    std::optional<KnownAttempt> known{};
  };
  Now now() const;
  std::uint64_t turn() const;

  /// To a server that was compared. False: since `seen` was read, which was before that, the store
  /// has gone to another one, or an attempt was confirmed that the server may lack.
  bool go_to(std::size_t host, const Now& seen);
  /// The server of this turn accepts no writes any more: all connections are made anew, to the next
  /// one first.
  void leave(std::uint64_t turn, std::size_t hosts);
  /// The fence of an attempt that is committed.
  void note(const RecordId& id, Fence fence);

  /// A session could not use it: the loop looks, even if no call makes it.
  void doubt();
  bool take_doubt();
  bool is_in_doubt() const;

 private:
  mutable std::mutex mutex_;
  Now now_;
  bool is_in_doubt_ = false;
};

}  // namespace idem::mysql
