#include "http/upstream_pool.hpp"

#include "loop/asio.hpp"

#include <idem/limits.hpp>

namespace idem::http {

struct UpstreamPool::Endpoints {
  std::vector<asio::ip::tcp::endpoint> all;
};

using boost::system::error_code;

namespace {

/// Cancels a connecting socket at its deadline.
class ConnectDeadline final : Timed {
 public:
  ConnectDeadline(Loop& loop, Socket& socket, MonotonicTime at)
      : Timed(loop), socket_(socket), at_(at) {}
  bool passed() const noexcept { return passed_; }

 private:
  void tick(MonotonicTime now) override {
    if (now < at_) return;
    passed_ = true;
    error_code ignored;
    socket_.close(ignored);
  }
  Socket& socket_;
  MonotonicTime at_;
  bool passed_ = false;
};

/// A name's look-up with its time limit; the first to end resumes the caller. Shared, because the
/// look-up may outlive the caller.
struct LookUp {
  using Answer = std::expected<std::vector<asio::ip::tcp::endpoint>, std::string>;

  LookUp(Loop& loop, MonotonicTime deadline)
      : resolver(loop.context()), time_limit(loop.context(), deadline - MonotonicClock::now()) {}

  static void start(const std::shared_ptr<LookUp>& self, const HostPort& name) {
    self->resolver.async_resolve(
        name.host, name.port, [self](const error_code& error, const auto& entries) {
          self->answer.emplace();
          if (error) {
            self->answer = std::unexpected("resolving the upstream failed: " + error.message());
          } else {
            for (const auto& entry : entries) (*self->answer)->push_back(entry.endpoint());
          }
          self->time_limit.cancel();
        });
  }

  asio::ip::basic_resolver<asio::ip::tcp, Executor> resolver;
  LoopTimer time_limit;
  std::optional<Answer> answer;
};

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
    : Timed(loop), address_(std::move(address)), options_(std::move(options)) {}

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

UpstreamPool::Endpoints UpstreamPool::numeric_endpoint() const {
  error_code error;
  const auto address = asio::ip::make_address(address_.endpoint.host, error);
  if (error) return {};
  const auto port = static_cast<std::uint16_t>(std::stoul(address_.endpoint.port));
  return {{asio::ip::tcp::endpoint(address, port)}};
}

Task<UpstreamPool::Connected> UpstreamPool::connect() {
  const MonotonicTime deadline = MonotonicClock::now() + options_.connect_timeout;
  const auto endpoints = co_await resolve(deadline);
  if (!endpoints) co_return Connected(std::unexpected(endpoints.error()));
  auto connected = co_await connect_to(*endpoints, deadline);
  if (!connected || !address_.tls) co_return connected;
  Wire& wire = **connected;
  const bool secured = co_await secure(wire, deadline);
  if (secured) co_return connected;
  const bool timed_out = wire.trouble() == Wire::Trouble::timeout;
  co_return Connected(
      not_connected(timed_out ? Reason::timeout : Reason::tls,
                    "TLS with the upstream failed: " +
                        (timed_out ? std::string("it took too long") : wire.tls()->why())));
}

// A numeric host needs no look-up, and so no wait for the resolver's one thread. A look-up that has
// begun cannot be cancelled, but no request waits for its end.
Task<std::expected<UpstreamPool::Endpoints, ConnectFailure>> UpstreamPool::resolve(
    MonotonicTime deadline) {
  using Result = std::expected<Endpoints, ConnectFailure>;
  Endpoints found = numeric_endpoint();
  if (!found.all.empty()) co_return Result(std::move(found));
  const auto looked_up = std::make_shared<LookUp>(loop_, deadline);
  LookUp::start(looked_up, address_.endpoint);
  const auto start = [&](Resumption<error_code> over) {
    looked_up->time_limit.async_wait(std::move(over));
  };
  auto waiting = suspend<error_code>(start);
  co_await waiting;
  if (!looked_up->answer) {
    looked_up->resolver.cancel();  // One that has not begun never does.
    co_return Result(not_connected(Reason::resolve, "resolving the upstream's name timed out"));
  }
  auto& answer = *looked_up->answer;
  if (!answer) co_return Result(not_connected(Reason::resolve, std::move(answer.error())));
  found.all = std::move(*answer);
  co_return Result(std::move(found));
}

Task<UpstreamPool::Connected> UpstreamPool::connect_to(const Endpoints& endpoints,
                                                       MonotonicTime deadline) {
  error_code error;
  Socket socket(loop_.context());
  ConnectDeadline limit(loop_, socket, deadline);
  for (const auto& endpoint : endpoints.all) {
    error_code ignored;
    socket.close(ignored);
    const auto start = [&](Resumption<error_code> done) {
      socket.async_connect(endpoint, std::move(done));
    };
    auto connecting = suspend<error_code>(start);
    error = co_await connecting;
    if (!error || limit.passed()) break;
  }
  if (limit.passed()) {
    co_return Connected(not_connected(Reason::timeout, "connecting to the upstream timed out"));
  }
  if (error) {
    co_return Connected(
        not_connected(Reason::connect, "connecting to the upstream failed: " + error.message()));
  }
  co_return Connected(std::make_unique<Wire>(loop_, std::move(socket)));
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
