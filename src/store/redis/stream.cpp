#include "store/redis/stream.hpp"

#include "loop/asio.hpp"
#include "loop/connecting.hpp"
#include "loop/deadline.hpp"

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
  const MonotonicTime until = MonotonicClock::now() + patience;
  auto looking_up = look_up(loop, to.host, std::to_string(to.port), until);
  const auto peers = co_await std::move(looking_up);
  if (!peers) co_return std::unexpected(no_connection(to, peers.error().why));
  auto socket = std::make_unique<Socket>(loop.context());
  auto connecting = connect_to_first(loop, *peers, until, *socket);
  const auto connected = co_await std::move(connecting);
  if (!connected) co_return std::unexpected(no_connection(to, connected.error().why));
  error_code ignored;
  (void)socket->set_option(tcp::no_delay(true), ignored);
  if (!context) {
    std::shared_ptr<Stream> plain = std::make_shared<Plain>(std::move(*socket));
    co_return plain;
  }

  auto encrypted = std::make_unique<TlsSocket>(std::move(*socket), context->context);
  SSL_set_tlsext_host_name(encrypted->native_handle(), to.host.c_str());
  encrypted->set_verify_callback(asio::ssl::host_name_verification(to.host));
  const auto shake_hands = [&](Resumption<error_code> done) {
    encrypted->async_handshake(asio::ssl::stream_base::client, std::move(done));
  };
  Deadline deadline(loop, until, [&] { encrypted->next_layer().close(ignored); });
  Task<error_code> shaking = finished(shake_hands);
  const error_code unshaken = co_await std::move(shaking);
  if (unshaken || deadline.has_passed()) {
    co_return std::unexpected(
        no_connection(to, deadline.has_passed() ? "no answer in time" : unshaken.message()));
  }
  std::shared_ptr<Stream> made =
      std::make_shared<Encrypted>(std::move(encrypted), std::move(context));
  co_return made;
}

}  // namespace idem::redis
