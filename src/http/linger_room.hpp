#pragma once

#include "http/network.hpp"

#include <idem/limits.hpp>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace idem::http {

/// Limits the connections of one listener that are read for long after their last answer, because
/// their client still sends: all together and by the client's address. Safe from any thread.
class LingerRoom : public std::enable_shared_from_this<LingerRoom> {
 public:
  /// An IPv4 address, or the first 64 bits of an IPv6 address.
  using Client = std::array<std::uint8_t, 9>;

  /// The place of one connection, held for as long as this object lives.
  class Place {
   public:
    Place(Place&&) noexcept = default;
    Place& operator=(Place&&) = delete;
    ~Place();

   private:
    friend class LingerRoom;
    Place(std::shared_ptr<LingerRoom> owner, const Client& client)
        : owner_(std::move(owner)), client_(client) {}

    std::shared_ptr<LingerRoom> owner_;  ///< Empty once moved from.
    Client client_;
  };

  /// Only in a shared_ptr: a place may outlive the server.
  explicit LingerRoom(std::size_t all_max = limits::lingering_max,
                      std::size_t per_address_max = limits::lingering_per_address_max)
      : all_max_(all_max), per_address_max_(per_address_max) {}

  /// Nothing when all places, or those of this address, are taken.
  std::optional<Place> take(const PeerAddress& address);

 private:
  void leave(const Client& client);

  const std::size_t all_max_;
  const std::size_t per_address_max_;
  std::mutex mutex_;
  std::size_t taken_ = 0;
  // Ordered, not hashed, because clients choose the addresses.
  std::map<Client, std::size_t> by_client_;
};

}  // namespace idem::http
