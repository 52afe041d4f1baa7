#pragma once

#include "http/network.hpp"
#include "loop/asio_names.hpp"

#include <idem/limits.hpp>
#include <idem/log.hpp>
#include <idem/record.hpp>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace idem::http {

/// Limits the open connections of one listener, all together and by the client's address, so that
/// one client cannot take the places of all others. Safe from any thread.
class Admission : public std::enable_shared_from_this<Admission> {
 public:
  struct Options {
    std::size_t connections_max = limits::connections_default;
    std::size_t per_address_max = limits::connections_per_address_default;
    /// Behind these are many clients: only `connections_max` limits them.
    std::vector<Network> proxies{};
    LogSink log{};  ///< Receives refusals, at most once in limits::refusal_log_interval.
  };

  /// The place of one connection, held for as long as this object lives.
  class Place {
   public:
    Place(Place&&) noexcept = default;
    Place& operator=(Place&&) = delete;
    ~Place();

   private:
    friend class Admission;
    /// An IPv4 address, or the first 64 bits of an IPv6 address: what a network gives one client.
    using Client = std::array<unsigned char, 16>;
    Place(std::shared_ptr<Admission> owner, const Client& client)
        : owner_(std::move(owner)), client_(client) {}

    std::shared_ptr<Admission> owner_;  ///< Empty once moved from.
    Client client_;
  };

  /// Only in a shared_ptr: a place may outlive the server.
  explicit Admission(Options options) : options_(std::move(options)), proxies_(options_.proxies) {}

  /// Replaces Options::proxies for connections from now on.
  void use_proxies(std::vector<Network> proxies);

  /// Nothing when this listener, or this address on it, has as many as it may.
  std::optional<Place> admit(const asio::ip::address& address);
  std::size_t open() const;
  /// Since the start.
  std::uint64_t refused() const;

 private:
  static Place::Client client_of(const asio::ip::address& address);
  void leave(const Place::Client& client);
  void note_refusal(const asio::ip::address& address, bool all_taken);

  const Options options_;
  mutable std::mutex mutex_;
  std::vector<Network> proxies_;
  std::size_t open_ = 0;
  // Ordered, not hashed, because clients choose the addresses. One entry for each address in use.
  std::map<Place::Client, std::size_t> by_client_;
  std::size_t refused_ = 0;  ///< Not logged yet.
  std::uint64_t refused_in_all_ = 0;
  std::optional<MonotonicTime> logged_at_;
};

}  // namespace idem::http
