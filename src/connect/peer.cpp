#include "connect/peer.hpp"

#include "connect/connect_limits.hpp"

#include <netdb.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace idem {
namespace {

using Found = std::expected<Peers, std::string>;

/// Asks with these flags of getaddrinfo(3).
Found ask_resolver(const std::string& host, const std::string& port, int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found);
  if (code != 0) return std::unexpected(std::string(::gai_strerror(code)));
  Peers peers;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    peers.push_back(make_peer(at->ai_addr, at->ai_addrlen));
  }
  ::freeaddrinfo(found);
  return peers;
}

/// Shared with the resolver's thread, which may outlive the caller's patience.
struct LookUpThread {
  std::mutex mutex;
  std::condition_variable ended;
  std::optional<Found> found;
};

}  // namespace

bool Peer::operator==(const Peer& other) const noexcept {
  return bytes == other.bytes && std::memcmp(&address, &other.address, bytes) == 0;
}

Peer make_peer(const sockaddr* address, socklen_t bytes) {
  Peer peer;
  peer.bytes = std::min<socklen_t>(bytes, sizeof peer.address);
  std::memcpy(&peer.address, address, peer.bytes);
  return peer;
}

std::string address_text(const Peer& peer) {
  char text[NI_MAXHOST] = "";
  ::getnameinfo(peer.raw(), peer.bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

std::optional<Peer> numeric_peer(const std::string& host, const std::string& port) {
  const Found found = ask_resolver(host, port, AI_NUMERICHOST | AI_NUMERICSERV);
  if (!found || found->empty()) return std::nullopt;
  return found->front();
}

std::expected<Peers, ConnectTrouble> look_up(const std::string& host, const std::string& port,
                                             MonotonicTime deadline,
                                             const std::atomic<bool>* is_abandoned) {
  if (const auto numeric = numeric_peer(host, port)) return Peers{*numeric};
  const auto shared = std::make_shared<LookUpThread>();
  try {
    std::thread([shared, host, port] {
      Found found = ask_resolver(host, port, 0);
      const std::lock_guard lock(shared->mutex);
      shared->found = std::move(found);
      shared->ended.notify_one();
    }).detach();
  } catch (const std::system_error&) {  // The process may start no more threads.
    return std::unexpected(ConnectTrouble{false, "no thread could look the name up"});
  }
  std::unique_lock lock(shared->mutex);
  while (!shared->found) {
    const Millis left = deadline - MonotonicClock::now();
    if (left <= Millis(0) || (is_abandoned != nullptr && is_abandoned->load())) {
      return std::unexpected(ConnectTrouble{true, "the look-up of the name took too long"});
    }
    shared->ended.wait_for(lock, std::min(left, Millis(limits::connect_look_interval)));
  }
  if (!*shared->found) return std::unexpected(ConnectTrouble{false, shared->found->error()});
  return std::move(**shared->found);
}

Peers in_order_of_tries(const Peers& peers) {
  Peers ordered;
  Peers of_first_family;
  Peers of_others;
  for (const Peer& peer : peers) {
    (peer.family() == peers.front().family() ? of_first_family : of_others).push_back(peer);
  }
  for (std::size_t i = 0; i < peers.size(); ++i) {
    for (const Peers* family : {&of_first_family, &of_others}) {
      if (i < family->size() && ordered.size() < limits::connect_addresses_max) {
        ordered.push_back((*family)[i]);
      }
    }
  }
  return ordered;
}

}  // namespace idem
