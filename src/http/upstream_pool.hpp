#pragma once

#include "connect/peer.hpp"
#include "http/server.hpp"
#include "http/wire.hpp"

#include <expected>
#include <memory>
#include <optional>
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
  enum class Reason : std::uint8_t { resolve, connect, timeout, tls, closed };
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
  /// included, ends within the connect timeout. Of several addresses of a name the first that
  /// accepts is taken (RFC 8305); one that fails later, in TLS, is a failure.
  Task<std::expected<std::unique_ptr<Wire>, ConnectFailure>> connect();
  /// Keeps a connection that UpstreamCall::take_reusable() gave.
  void give_back(std::unique_ptr<Wire> wire);

 private:
  struct Idle {
    std::unique_ptr<Wire> wire;
    MonotonicTime since;
  };
  /// The addresses of the upstream, in the order in which they are tried.
  struct NameAnswer {
    Peers peers;
    MonotonicTime until;         ///< Used no longer; never ends for an address in digits.
    bool was_reordered = false;  ///< The first did not accept, and another one did.
  };
  using Connected = std::expected<std::unique_ptr<Wire>, ConnectFailure>;
  Task<std::expected<NameAnswer, ConnectFailure>> resolve(MonotonicTime deadline);
  Task<Connected> connect_to(NameAnswer& answer, MonotonicTime deadline);
  Task<bool> secure(Wire& wire, MonotonicTime deadline);
  void forget_name() noexcept;
  void tick(MonotonicTime now) override;

  UpstreamAddress address_;
  Options options_;
  std::vector<Idle> idle_;  ///< Oldest first; taken from the back, so that unused ones age.
  /// None: the next connection asks for it. A name's is kept only where its first address did not
  /// accept, so that names whose answers change with each look-up stay as they are.
  std::optional<NameAnswer> kept_;
  TlsTicket ticket_{nullptr, nullptr};  ///< Of the last session, for the next.
  bool pruning_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< For what is posted.
};

}  // namespace idem::http
