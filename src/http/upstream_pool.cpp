#include "http/upstream_pool.hpp"

#include <idem/limits.hpp>

#include <boost/asio/connect.hpp>
#include <boost/asio/redirect_error.hpp>

namespace idem::http {

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

}  // namespace

std::expected<UpstreamAddress, std::string> parse_upstream_url(const std::string& url) {
  static constexpr std::string_view scheme = "http://";
  if (!url.starts_with(scheme)) {
    return std::unexpected("\"" + url + "\": the upstream is given as http://HOST[:PORT]");
  }
  std::string authority = url.substr(scheme.size());
  if (authority.ends_with('/')) authority.pop_back();
  if (authority.empty() || authority.find_first_of("/?#@ ") != std::string::npos) {
    return std::unexpected("\"" + url + "\": only http://HOST[:PORT], without a path or user name");
  }
  const auto colon = authority.rfind(':');
  const bool has_port =
      colon != std::string::npos && authority.find(']', colon) == std::string::npos;
  auto endpoint = parse_host_port(has_port ? authority : authority + ":80");
  if (!endpoint) return std::unexpected(endpoint.error());
  return UpstreamAddress{std::move(*endpoint), std::move(authority)};
}

UpstreamPool::UpstreamPool(Loop& loop, UpstreamAddress address, Options options)
    : Timed(loop), address_(std::move(address)), options_(options) {}

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
  if (options_.keep_alive_idle <= Millis(0)) return;
  if (idle_.size() >= limits::upstream_idle_connections_per_loop_max) return;
  wire->no_deadline();
  wire->unpin();
  idle_.push_back({std::move(wire), MonotonicClock::now()});
}

std::vector<asio::ip::tcp::endpoint> UpstreamPool::numeric_endpoint() const {
  error_code error;
  const auto address = asio::ip::make_address(address_.endpoint.host, error);
  if (error) return {};
  const auto port = static_cast<std::uint16_t>(std::stoul(address_.endpoint.port));
  return {asio::ip::tcp::endpoint(address, port)};
}

Task<std::expected<std::unique_ptr<Wire>, std::string>> UpstreamPool::connect() {
  using Result = std::expected<std::unique_ptr<Wire>, std::string>;
  error_code error;
  auto token = asio::redirect_error(resume, error);
  // A numeric host is never looked up: the resolver's one thread would be one more thing to wait
  // for.
  std::vector<asio::ip::tcp::endpoint> found = numeric_endpoint();
  if (found.empty()) {
    asio::ip::basic_resolver<asio::ip::tcp, Executor> resolver(loop_.context());
    const auto entries =
        co_await resolver.async_resolve(address_.endpoint.host, address_.endpoint.port, token);
    if (error) {
      co_return Result(std::unexpected("resolving the upstream failed: " + error.message()));
    }
    for (const auto& entry : entries) found.push_back(entry.endpoint());
  }
  Socket socket(loop_.context());
  ConnectDeadline deadline(loop_, socket, MonotonicClock::now() + options_.connect_timeout);
  for (const auto& endpoint : found) {
    error_code ignored;
    socket.close(ignored);
    co_await socket.async_connect(endpoint, token);
    if (!error || deadline.passed()) break;
  }
  if (deadline.passed()) co_return Result(std::unexpected("connecting to the upstream timed out"));
  if (error)
    co_return Result(std::unexpected("connecting to the upstream failed: " + error.message()));
  co_return Result(std::make_unique<Wire>(loop_, std::move(socket)));
}

void UpstreamPool::tick(MonotonicTime now) {
  if (pruning_ || idle_.empty() || idle_.front().since + options_.keep_alive_idle > now) return;
  pruning_ = true;
  // Not here: destroying a Wire changes the list that is being ticked.
  loop_.post([this] {
    pruning_ = false;
    const MonotonicTime fresh_since = MonotonicClock::now() - options_.keep_alive_idle;
    while (!idle_.empty() && idle_.front().since < fresh_since) idle_.erase(idle_.begin());
  });
}

}  // namespace idem::http
