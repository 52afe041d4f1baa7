#include "http/upstream_pool.hpp"

#include "connect/connect_limits.hpp"
#include "loop/asio.hpp"
#include "loop/connecting.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::http {

using boost::system::error_code;

namespace {

using Reason = ConnectFailure::Reason;

std::unexpected<ConnectFailure> not_connected(Reason reason, std::string why) {
  return std::unexpected(ConnectFailure{reason, std::move(why)});
}

}  // namespace

std::expected<UpstreamAddress, std::string> parse_upstream_url(const std::string& url) {
  static constexpr std::string_view plain = "http://";
  static constexpr std::string_view secure = "https://";
  const bool tls = url.starts_with(secure);
  if (!tls && !url.starts_with(plain)) {
    return std::unexpected(
        "\"" + url + "\": the upstream is given as http://HOST[:PORT] or https://HOST[:PORT]");
  }
  std::string authority = url.substr(tls ? secure.size() : plain.size());
  if (authority.ends_with('/')) authority.pop_back();
  if (authority.empty() || authority.find_first_of("/?#@ ") != std::string::npos) {
    return std::unexpected("\"" + url +
                           "\": only a scheme and HOST[:PORT], without a path or user name");
  }
  const auto colon = authority.rfind(':');
  const bool has_port =
      colon != std::string::npos && authority.find(']', colon) == std::string::npos;
  auto endpoint = parse_host_port(has_port ? authority : authority + (tls ? ":443" : ":80"));
  if (!endpoint) return std::unexpected(endpoint.error());
  return UpstreamAddress{std::move(*endpoint), std::move(authority), tls};
}

UpstreamPool::UpstreamPool(Loop& loop, UpstreamAddress address, Options options)
    : Timed(loop), address_(std::move(address)), options_(std::move(options)) {
  const auto numeric = numeric_peer(address_.endpoint.host, address_.endpoint.port);
  if (numeric) kept_ = NameAnswer{{*numeric}, MonotonicTime::max()};
}

std::unique_ptr<Wire> UpstreamPool::take_idle() {
  const MonotonicTime fresh_since = MonotonicClock::now() - options_.keep_alive_idle;
  while (!idle_.empty()) {
    Idle last = std::move(idle_.back());
    idle_.pop_back();
    if (last.since >= fresh_since && last.wire->quiet_and_open()) return std::move(last.wire);
  }
  return nullptr;
}

void UpstreamPool::give_back(std::unique_ptr<Wire> wire) {
  // A server hands tickets out behind its handshake, so they are here by the first answer.
  if (auto* session = wire->tls()) {
    if (auto ticket = session->ticket()) ticket_ = std::move(ticket);
  }
  if (options_.keep_alive_idle <= Millis(0)) return;
  if (idle_.size() >= limits::upstream_idle_connections_per_loop_max) return;
  wire->no_deadline();
  wire->unpin();
  idle_.push_back({std::move(wire), MonotonicClock::now()});
}

Task<UpstreamPool::Connected> UpstreamPool::connect() {
  const MonotonicTime deadline = MonotonicClock::now() + options_.connect_timeout;
  auto resolving = resolve(deadline);
  auto answer = co_await std::move(resolving);
  if (!answer) co_return Connected(std::unexpected(std::move(answer.error())));
  auto connecting = connect_to(*answer, deadline);
  auto connected = co_await std::move(connecting);
  if (!connected) co_return connected;
  if (address_.tls) {
    Wire& wire = **connected;
    const bool secured = co_await secure(wire, deadline);
    if (!secured) {
      const bool timed_out = wire.trouble() == Wire::Trouble::timeout;
      const std::string why = timed_out ? std::string("it took too long") : wire.tls()->why();
      forget_name();
      co_return Connected(not_connected(timed_out ? Reason::timeout : Reason::tls,
                                        "TLS with the upstream failed: " + why));
    }
  }
  if (answer->was_reordered) kept_ = std::move(*answer);
  co_return connected;
}

Task<std::expected<UpstreamPool::NameAnswer, ConnectFailure>> UpstreamPool::resolve(
    MonotonicTime deadline) {
  using Result = std::expected<NameAnswer, ConnectFailure>;
  const MonotonicTime now = MonotonicClock::now();
  if (kept_ && now < kept_->until) co_return Result(*kept_);
  auto looking_up = look_up(loop_, address_.endpoint.host, address_.endpoint.port, deadline);
  auto peers = co_await std::move(looking_up);
  if (peers) {
    co_return Result(NameAnswer{std::move(*peers), now + Millis(limits::name_answer_kept_max)});
  }
  co_return Result(
      not_connected(Reason::resolve, peers.error().is_late
                                         ? "resolving the upstream's name timed out"
                                         : "resolving the upstream failed: " + peers.error().why));
}

Task<UpstreamPool::Connected> UpstreamPool::connect_to(NameAnswer& answer, MonotonicTime deadline) {
  Socket socket(loop_.context());
  auto connecting = connect_to_first(loop_, answer.peers, deadline, socket);
  const auto accepted = co_await std::move(connecting);
  if (accepted) {
    // That one first; the order of the others stays.
    const auto at = std::ranges::find(answer.peers, *accepted);
    answer.was_reordered = at != answer.peers.begin();
    std::rotate(answer.peers.begin(), at, std::next(at));
    co_return Connected(std::make_unique<Wire>(loop_, std::move(socket)));
  }
  forget_name();
  if (accepted.error().is_late) {
    co_return Connected(not_connected(Reason::timeout, "connecting to the upstream timed out"));
  }
  co_return Connected(
      not_connected(Reason::connect, "connecting to the upstream failed: " + accepted.error().why));
}

void UpstreamPool::forget_name() noexcept {
  if (kept_ && kept_->until != MonotonicTime::max()) kept_.reset();
}

Task<bool> UpstreamPool::secure(Wire& wire, MonotonicTime deadline) {
  auto session =
      TlsSession::connect(*options_.tls, wire.descriptor(), address_.endpoint.host, ticket_.get());
  wire.deadline(deadline);
  const bool secured = co_await wire.secure(std::move(session));
  wire.no_deadline();
  co_return secured;
}

void UpstreamPool::tick(MonotonicTime now) {
  if (pruning_ || idle_.empty() || idle_.front().since + options_.keep_alive_idle > now) return;
  pruning_ = true;
  // Not here: destroying a Wire changes the list that is being ticked.
  loop_.post([this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    pruning_ = false;
    const MonotonicTime fresh_since = MonotonicClock::now() - options_.keep_alive_idle;
    while (!idle_.empty() && idle_.front().since < fresh_since) idle_.erase(idle_.begin());
  });
}

}  // namespace idem::http
