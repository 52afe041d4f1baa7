#pragma once

#include <idem/record.hpp>

#include <sys/socket.h>

#include <atomic>
#include <expected>
#include <optional>
#include <string>
#include <vector>

/// The addresses of a server's name.
namespace idem {

/// One address of a server, with its port, as connect(2) takes it.
struct Peer {
  sockaddr_storage address{};
  socklen_t bytes = 0;

  int family() const noexcept { return address.ss_family; }
  const sockaddr* raw() const noexcept { return reinterpret_cast<const sockaddr*>(&address); }
  bool operator==(const Peer& other) const noexcept;
};
using Peers = std::vector<Peer>;

Peer make_peer(const sockaddr* address, socklen_t bytes);

/// The address in digits, without its port.
std::string address_text(const Peer& peer);

/// Of an address in digits, which needs no look-up. None: `host` is a name.
std::optional<Peer> numeric_peer(const std::string& host, const std::string& port);

/// Why there is no address, or no connection.
struct ConnectTrouble {
  bool is_late = false;  ///< The deadline came, or the caller gave it up.
  std::string why;       ///< A part of a sentence.
};

/// Asks the system's resolver on a thread of its own, because that takes no deadline; an address in
/// digits is not asked for. Blocks until the answer or the deadline; with `is_abandoned` it ends
/// within a quarter of a second after that is set.
std::expected<Peers, ConnectTrouble> look_up(const std::string& host, const std::string& port,
                                             MonotonicTime deadline,
                                             const std::atomic<bool>* is_abandoned = nullptr);

/// In the order in which they are tried (RFC 8305 §4): the resolver's, but the two families take
/// turns, and the first address stays the first. limits::connect_addresses_max at most.
Peers in_order_of_tries(const Peers& peers);

}  // namespace idem
