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
  std::string authority;  ///< As configured.
  bool tls = false;
};
/// From "http://host[:port]" or "https://host[:port]"; a path, query, user information or another
/// scheme is refused.
std::expected<UpstreamAddress, std::string> parse_upstream_url(const std::string& url);

/// Why there is no connection.
struct ConnectFailure {
  enum class Reason : std::uint8_t { resolve, connect, timeout, tls };
  Reason reason = Reason::connect;
  std::string why{};  ///< A sentence.
};

/// The connections of one loop to one upstream. Loop's thread only.
class UpstreamPool final : Timed {
 public:
  struct Options {
    Millis connect_timeout;
    Millis keep_alive_idle;
    std::shared_ptr<const TlsContext> tls{};  ///< Where the address asks for it.
  };
  UpstreamPool(Loop& loop, UpstreamAddress address, Options options);

  /// An idle connection that is still alive: nothing unread, not closed, not idle for too long
  /// (RFC 9112 §9.2). None: connect().
  std::unique_ptr<Wire> take_idle();
  /// A new connection; no byte of any request is sent (no TCP Fast Open).
  /// With TLS, the handshake is complete, without early data. All of it, the look-up of a name
  /// included, ends within the connect timeout.
  Task<std::expected<std::unique_ptr<Wire>, ConnectFailure>> connect();
  /// Keeps a connection that UpstreamCall::take_reusable() gave.
  void give_back(std::unique_ptr<Wire> wire);

 private:
  struct Idle {
    std::unique_ptr<Wire> wire;
    MonotonicTime since;
  };
  using Connected = std::expected<std::unique_ptr<Wire>, ConnectFailure>;
  struct Endpoints;
  Endpoints numeric_endpoint() const;
  Task<std::expected<Endpoints, ConnectFailure>> resolve(MonotonicTime deadline);
  Task<Connected> connect_to(const Endpoints& endpoints, MonotonicTime deadline);
  Task<bool> secure(Wire& wire, MonotonicTime deadline);
  void tick(MonotonicTime now) override;

  UpstreamAddress address_;
  Options options_;
  std::vector<Idle> idle_;  ///< Oldest first; taken from the back, so that unused ones age.
  TlsTicket ticket_{nullptr, nullptr};  ///< Of the last session, for the next.
  bool pruning_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< For what is posted.
};

}  // namespace idem::http
