#pragma once

#include "http/network.hpp"

#include <idem/limits.hpp>

#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::http {

/// Limits the connections of one listener that are read for long after their last answer, because
/// their client still sends: all together and by client. A client is an address or, behind a
/// trusted proxy, a scope. Requests of a proxy whose scope is not known have only the bound of all.
/// Safe from any thread.
class LingerRoom : public std::enable_shared_from_this<LingerRoom> {
  struct Held {
    std::string client;
    std::uint64_t number;  ///< By when it was taken.
    std::atomic<bool> ended{false};
    std::list<std::shared_ptr<Held>>::iterator at{};  ///< Unless ended.
  };

 public:
  /// The place of one connection, held for as long as this object lives.
  class Place {
   public:
    Place(Place&&) noexcept = default;
    Place& operator=(Place&&) = delete;
    ~Place();

    /// True once another connection got this place: stop reading. A connection that is silent may
    /// see it as late as limits::linger_silence_max; it keeps its descriptor until then.
    bool ended() const noexcept { return held_->ended.load(); }

   private:
    friend class LingerRoom;
    Place(std::shared_ptr<LingerRoom> owner, std::shared_ptr<Held> held)
        : owner_(std::move(owner)), held_(std::move(held)) {}

    std::shared_ptr<LingerRoom> owner_;  ///< Empty once moved from.
    std::shared_ptr<Held> held_;
  };

  /// Only in a shared_ptr: a place may outlive the server.
  explicit LingerRoom(std::vector<Network> proxies = {},
                      std::size_t all_max = limits::lingering_max,
                      std::size_t per_client_max = limits::lingering_per_address_max)
      : all_max_(all_max), per_client_max_(per_client_max), proxies_(std::move(proxies)) {}

  /// For places taken from now on: behind these are many clients.
  void use_proxies(std::vector<Network> proxies);

  /// `scope` is empty where it is not known. Nothing when this client has its places. When all are
  /// taken, the client with the most loses the one that it has held the longest.
  std::optional<Place> take(const PeerAddress& address, std::string_view scope);

 private:
  std::string client_of(const PeerAddress& address, std::string_view scope) const;
  void end_one();
  void forget(Held& held);
  void leave(Held& held);

  const std::size_t all_max_;
  const std::size_t per_client_max_;
  std::mutex mutex_;
  std::vector<Network> proxies_;
  std::size_t taken_ = 0;
  std::uint64_t next_number_ = 0;
  // Ordered, not hashed, because clients choose the names. Of each the oldest place comes first; no
  // list is empty.
  std::map<std::string, std::list<std::shared_ptr<Held>>> by_client_;
};

}  // namespace idem::http
