#include "store/redis/stream.hpp"

#include "loop/asio.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

#include <utility>

namespace idem::redis {

struct ClientTls {
  asio::ssl::context context{asio::ssl::context::tls_client};
};

namespace {

using asio::ip::tcp;
using boost::system::error_code;
using Resolver = asio::ip::basic_resolver<tcp, Executor>;

class Plain final : public Stream {
 public:
  explicit Plain(Socket socket) : socket_(std::move(socket)) {}
  void read_some(std::span<char> into, Done done) override {
    socket_.async_read_some(asio::buffer(into.data(), into.size()), std::move(done));
  }
  void write_all(std::string_view from, Done done) override {
    asio::async_write(socket_, asio::buffer(from), std::move(done));
  }
  void close() noexcept override {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  Socket socket_;
};

using TlsSocket = asio::ssl::stream<Socket>;

class Encrypted final : public Stream {
 public:
  Encrypted(std::unique_ptr<TlsSocket> socket, TlsContext context)
      : context_(std::move(context)), socket_(std::move(socket)) {}
  void read_some(std::span<char> into, Done done) override {
    socket_->async_read_some(asio::buffer(into.data(), into.size()), std::move(done));
  }
  void write_all(std::string_view from, Done done) override {
    asio::async_write(*socket_, asio::buffer(from), std::move(done));
  }
  void close() noexcept override {
    error_code ignored;
    socket_->lowest_layer().close(ignored);
  }

 private:
  TlsContext context_;
  std::unique_ptr<TlsSocket> socket_;
};

/// Closes a socket whose time is over, so that operations on it end.
class Deadline final : Timed {
 public:
  Deadline(Loop& loop, MonotonicTime at, std::function<void()> end)
      : Timed(loop), at_(at), end_(std::move(end)) {}
  bool is_over() const noexcept { return over_; }

 private:
  void tick(MonotonicTime now) override {
    if (over_ || now < at_) return;
    over_ = true;
    end_();
  }
  MonotonicTime at_;
  std::function<void()> end_;
  bool over_ = false;
};

using Resolved = std::pair<error_code, Resolver::results_type>;

/// Belongs to the look-up that runs, and through `waiting` owns the coroutine that waits for it.
/// That coroutine only watches it: if each owned the other, neither would end with the loop.
struct Lookup {
  explicit Lookup(asio::io_context& context) : resolver(context) {}
  void end(const error_code& error, Resolver::results_type found) {
    if (!waiting) return;
    Resumption<Resolved> done = std::move(*waiting);
    waiting.reset();
    done(error, std::move(found));
  }
  Resolver resolver;
  std::optional<Resumption<Resolved>> waiting{};
};

std::string no_connection(const Address& to, const std::string& why) {
  return to.host + ":" + std::to_string(to.port) + ": " + why;
}

/// Waits for an operation that ends with an error code.
template <class Begin>
Task<error_code> finished(Begin begin) {
  auto waiting = suspend<error_code>(std::move(begin));
  co_return co_await waiting;
}

}  // namespace

std::expected<TlsContext, std::string> make_tls_context(const Tls& tls) {
  if (!tls.on) return TlsContext();
  const auto made = std::make_shared<ClientTls>();
  asio::ssl::context& context = made->context;
  error_code error;
  (void)context.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
  (void)context.set_verify_mode(asio::ssl::verify_peer, error);
  if (tls.ca_file.empty()) {
    (void)context.set_default_verify_paths(error);
  } else if (context.load_verify_file(tls.ca_file, error); error) {
    return std::unexpected("cannot use the certificates of " + tls.ca_file);
  }
  if (tls.cert_file.empty()) return made;
  if (context.use_certificate_chain_file(tls.cert_file, error); error) {
    return std::unexpected("cannot use the certificate " + tls.cert_file);
  }
  if (context.use_private_key_file(tls.key_file, asio::ssl::context::pem, error); error) {
    return std::unexpected("cannot use the key " + tls.key_file);
  }
  return made;
}

Task<std::expected<std::shared_ptr<Stream>, std::string>> connect(Loop& loop, Address to,
                                                                  TlsContext context,
                                                                  Millis patience) {
  // A look-up that hangs cannot be cancelled: after the deadline its result is ignored.
  std::weak_ptr<Lookup> lookup;
  auto socket = std::make_unique<Socket>(loop.context());
  Socket* lowest = socket.get();
  Deadline deadline(loop, MonotonicClock::now() + patience, [&] {
    error_code ignored;
    lowest->close(ignored);
    // Not from within a tick.
    loop.post([lookup] {
      if (const auto running = lookup.lock()) running->end(asio::error::timed_out, {});
    });
  });
  const auto failed = [&](const error_code& error) {
    return std::unexpected(
        no_connection(to, deadline.is_over() ? "no answer in time" : error.message()));
  };

  const std::string port = std::to_string(to.port);
  const auto look_up = [&](Resumption<Resolved> done) {
    const auto running = std::make_shared<Lookup>(loop.context());
    lookup = running;
    running->waiting.emplace(std::move(done));
    running->resolver.async_resolve(
        to.host, port, [running](const error_code& error, Resolver::results_type found) {
          running->end(error, std::move(found));
        });
  };
  auto looking_up = suspend<Resolved>(look_up);
  const Resolved resolved = co_await looking_up;
  if (resolved.first || deadline.is_over()) co_return failed(resolved.first);

  const auto begin_connect = [&](Resumption<error_code> done) {
    asio::async_connect(*lowest, resolved.second,
                        [done = std::move(done)](const error_code& error,
                                                 const tcp::endpoint&) mutable { done(error); });
  };
  Task<error_code> connecting = finished(begin_connect);
  const error_code unconnected = co_await std::move(connecting);
  if (unconnected || deadline.is_over()) co_return failed(unconnected);
  error_code ignored;
  (void)socket->set_option(tcp::no_delay(true), ignored);
  if (!context) {
    std::shared_ptr<Stream> plain = std::make_shared<Plain>(std::move(*socket));
    co_return plain;
  }

  auto encrypted = std::make_unique<TlsSocket>(std::move(*socket), context->context);
  lowest = &encrypted->next_layer();
  SSL_set_tlsext_host_name(encrypted->native_handle(), to.host.c_str());
  encrypted->set_verify_callback(asio::ssl::host_name_verification(to.host));
  const auto shake_hands = [&](Resumption<error_code> done) {
    encrypted->async_handshake(asio::ssl::stream_base::client, std::move(done));
  };
  Task<error_code> shaking = finished(shake_hands);
  const error_code unshaken = co_await std::move(shaking);
  if (unshaken || deadline.is_over()) co_return failed(unshaken);
  std::shared_ptr<Stream> made =
      std::make_shared<Encrypted>(std::move(encrypted), std::move(context));
  co_return made;
}

}  // namespace idem::redis
