#include "http/server.hpp"

#include "loop/asio.hpp"

#include <idem/limits.hpp>

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <atomic>
#include <charconv>
#include <set>

namespace idem::http {
namespace {

using boost::system::error_code;
using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;

/// The open connections of one loop; touched on that loop's thread only.
struct Connections {
  std::set<ServerStream*> open;
  bool leaving = false;
  bool draining = false;
};

/// Outlives the server object: a coroutine that is cut off at the end of the process still removes
/// its stream from the list.
struct Accepted {
  explicit Accepted(std::size_t loops) : by_loop(loops) {}
  std::vector<Connections> by_loop;
  std::atomic<std::size_t> loops_draining{0};
};

/// Keeps the stream on its list for as long as its coroutine lives, an exception included.
class Listed {
 public:
  Listed(std::shared_ptr<Accepted> accepted, std::size_t index, ServerStream& stream)
      : accepted_(std::move(accepted)), index_(index), stream_(stream) {
    Connections& mine = accepted_->by_loop[index_];
    mine.open.insert(&stream_);
    if (mine.leaving) stream_.leave();
    if (mine.draining) stream_.drain();
  }
  ~Listed() { accepted_->by_loop[index_].open.erase(&stream_); }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;

 private:
  std::shared_ptr<Accepted> accepted_;
  std::size_t index_;
  ServerStream& stream_;
};

Task<void> serve_connection(ServerStream& stream, Service& service, LingerRoom& lingering,
                            std::shared_ptr<const TlsContext> tls) {
  if (tls) {
    const bool secured = co_await stream.secure(*tls);
    if (!secured) co_return;
  }
  for (;;) {
    stream.errors_as(service.error_form());
    const bool more = co_await stream.next_request();
    if (!more) break;
    co_await service.serve(stream);
    const bool again = co_await stream.finish_request();
    if (!again) break;
  }
  co_await stream.close(lingering);
}

class AsioServer final : public Server {
 public:
  AsioServer(std::vector<ServingLoop> loops, ServerStream::Options options,
             Admission::Options admission)
      : loops_(std::move(loops)),
        options_(options),
        accepted_(std::make_shared<Accepted>(loops_.size())),
        lingering_(std::make_shared<LingerRoom>(admission.proxies)),
        admission_(std::make_shared<Admission>(std::move(admission))),
        acceptor_(loops_.front().loop->context()) {}

  std::expected<void, std::string> bind(const std::string& address) {
    const auto parts = parse_host_port(address);
    if (!parts) return std::unexpected(parts.error());
    error_code error;
    asio::ip::basic_resolver<asio::ip::tcp, Executor> resolver(loops_.front().loop->context());
    const auto found = resolver.resolve(parts->host, parts->port, error);
    if (error) return std::unexpected(address + ": " + error.message());
    const auto endpoint = found.begin()->endpoint();
    acceptor_.open(endpoint.protocol(), error);
    // SO_REUSEADDR outlives TIME_WAIT only; a port with a listener stays refused. Never
    // SO_REUSEPORT.
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) return std::unexpected("cannot listen on " + address + ": " + error.message());
    return {};
  }

  std::expected<void, std::string> adopt_listener(int socket) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    error_code error;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
      error = error_code(errno, boost::system::system_category());
    } else {
      const bool is_v6 = name.ss_family == AF_INET6;
      acceptor_.assign(is_v6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), socket, error);
    }
    if (error) return std::unexpected("the socket that was passed: " + error.message());
    return {};
  }

  int socket() override { return acceptor_.native_handle(); }

  std::string address() const override {
    error_code ignored;
    const auto endpoint = acceptor_.local_endpoint(ignored);
    const std::string host = endpoint.address().to_string();
    const std::string shown = endpoint.address().is_v6() ? "[" + host + "]" : host;
    return shown + ":" + std::to_string(endpoint.port());
  }

  void use_tls(std::shared_ptr<const TlsContext> context) override {
    loops_.front().loop->post(
        [this, context = std::move(context)]() mutable { tls_ = std::move(context); });
  }

  void use_proxies(std::vector<Network> proxies) override {
    lingering_->use_proxies(proxies);
    admission_->use_proxies(std::move(proxies));
  }

  std::size_t open_connections() const override { return admission_->open(); }
  std::uint64_t refused_connections() const override { return admission_->refused(); }

  void start() override { accept_next(); }

  void leave() override {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      loops_[i].loop->post([this, i] {
        Connections& mine = accepted_->by_loop[i];
        mine.leaving = true;
        for (auto* stream : mine.open) stream->leave();
      });
    }
  }

  void drain() override {
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      loops_[i].loop->post([this, i] {
        if (i == 0) {
          error_code ignored;
          acceptor_.close(ignored);
        }
        Connections& mine = accepted_->by_loop[i];
        mine.draining = true;
        for (auto* stream : mine.open) stream->drain();
        // Behind the connections that were accepted before the acceptor closed: their handlers wait
        // on this loop, and they have no place yet that drained() would see.
        loops_[i].loop->post([this] { accepted_->loops_draining.fetch_add(1); });
      });
    }
  }

  bool drained() const override {
    // A connection accepted just before has its place, though no coroutine has it yet.
    if (accepted_->loops_draining.load() < loops_.size() || admission_->open() > 0) return false;
    for (const auto& serving : loops_) {
      if (serving.loop->running() > 0) return false;
    }
    return true;
  }

 private:
  void accept_next() {
    const std::size_t index = next_++ % loops_.size();
    acceptor_.async_accept(loops_[index].loop->context(),
                           [this, index](const error_code& error, Socket socket) {
                             // Also when it closes: the client has the connection already.
                             if (!error) offer(index, std::move(socket));
                             if (!acceptor_.is_open()) return;
                             if (error && error != asio::error::connection_aborted)
                               return pause_accepting();
                             accept_next();
                           });
  }

  // Most likely there are no descriptors left: accepting again at once would spin.
  void pause_accepting() { loops_.front().loop->spawn(accept_after_pause()); }
  Task<void> accept_after_pause() {
    co_await loops_.front().loop->sleep(Millis(100));
    if (acceptor_.is_open()) accept_next();
  }

  // A connection without a place is closed by going out of scope, before a byte of it is read.
  void offer(std::size_t index, Socket socket) {
    error_code gone;
    const auto peer = socket.remote_endpoint(gone);
    if (gone) return;
    auto place = admission_->admit(peer.address());
    if (!place) return;
    const int unsent = limits::unsent_bytes_max;
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    loops_[index].loop->post(
        [this, index, tls = tls_, moved = std::move(socket), held = std::move(*place)]() mutable {
          adopt(index, std::move(moved), std::move(tls), std::move(held));
        });
  }

  void adopt(std::size_t index, Socket socket, std::shared_ptr<const TlsContext> tls,
             Admission::Place place) {
    loops_[index].loop->spawn(run(index, std::move(socket), std::move(tls), std::move(place)));
  }

  // The place is given up when the coroutine's frame goes, after the stream, however it ends.
  Task<void> run(std::size_t index, Socket socket, std::shared_ptr<const TlsContext> tls,
                 [[maybe_unused]] Admission::Place place) {
    ServerStream stream(*loops_[index].loop, std::move(socket), options_);
    const Listed listed(accepted_, index, stream);
    const auto lingering = lingering_;  // This coroutine may outlive the server.
    co_await serve_connection(stream, *loops_[index].service, *lingering, std::move(tls));
  }

  std::vector<ServingLoop> loops_;
  ServerStream::Options options_;
  std::shared_ptr<Accepted> accepted_;
  std::shared_ptr<LingerRoom> lingering_;
  std::shared_ptr<Admission> admission_;
  Acceptor acceptor_;
  std::shared_ptr<const TlsContext> tls_;  ///< The first loop's thread only.
  std::size_t next_ = 0;
};

}  // namespace

std::expected<std::unique_ptr<Server>, std::string> Server::listen(const std::string& address,
                                                                   std::vector<ServingLoop> loops,
                                                                   ServerStream::Options options,
                                                                   Admission::Options admission,
                                                                   int passed) {
  auto server = std::make_unique<AsioServer>(std::move(loops), options, std::move(admission));
  auto bound = passed == no_socket ? server->bind(address) : server->adopt_listener(passed);
  if (!bound) return std::unexpected(bound.error());
  return server;
}

std::expected<HostPort, std::string> parse_host_port(const std::string& address) {
  const auto wrong = std::unexpected("\"" + address + "\" is not HOST:PORT");
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return wrong;
  HostPort parts{address.substr(0, colon), address.substr(colon + 1)};
  unsigned port = 0;
  const char* end = parts.port.data() + parts.port.size();
  const auto parsed = std::from_chars(parts.port.data(), end, port);
  if (parsed.ec != std::errc{} || parsed.ptr != end || port > 65535) return wrong;
  const bool bracketed = parts.host.front() == '[' && parts.host.back() == ']';
  if (bracketed) parts.host = parts.host.substr(1, parts.host.size() - 2);
  if (!bracketed && parts.host.find(':') != std::string::npos) return wrong;
  return parts;
}

}  // namespace idem::http
