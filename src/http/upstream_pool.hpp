#pragma once

#include "http/server.hpp"
#include "http/wire.hpp"

#include <expected>
#include <memory>
#include <string>
#include <vector>

namespace idem::http {

struct UpstreamAddress {
  HostPort endpoint;
  std::string authority;  ///< As configured: what an absolute URL would carry.
};
/// From "http://host[:port]"; a path, query, user information or another scheme is refused.
std::expected<UpstreamAddress, std::string> parse_upstream_url(const std::string& url);

/// The connections of one loop to one upstream. Loop's thread only.
class UpstreamPool final : Timed {
 public:
  struct Options {
    Millis connect_timeout;
    Millis keep_alive_idle;
  };
  UpstreamPool(Loop& loop, UpstreamAddress address, Options options);

  /// An idle connection that is still alive: nothing unread, not closed, not idle for too long
  /// (RFC 9112 §9.2). None: open one.
  std::unique_ptr<Wire> take_idle();
  /// A new connection; no byte of any request is sent (no TCP Fast Open).
  Task<std::expected<std::unique_ptr<Wire>, std::string>> connect();
  /// Keeps a connection whose last answer ended cleanly.
  void give_back(std::unique_ptr<Wire> wire);

 private:
  struct Idle {
    std::unique_ptr<Wire> wire;
    MonotonicTime since;
  };
  std::vector<asio::ip::tcp::endpoint> numeric_endpoint() const;
  void tick(MonotonicTime now) override;

  UpstreamAddress address_;
  Options options_;
  std::vector<Idle> idle_;  ///< Oldest first; taken from the back, so that spares age out.
  bool pruning_ = false;
};

}  // namespace idem::http
