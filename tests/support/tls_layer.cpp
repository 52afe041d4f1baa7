#include "support/tls_layer.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <csignal>
#include <list>
#include <mutex>

namespace idem::test {
namespace {

std::string wire_form(const std::string& protocol) {
  return std::string(1, static_cast<char>(protocol.size())) + protocol;
}

int choose(SSL*, const unsigned char** chosen, unsigned char* chosen_bytes,
           const unsigned char* offered, unsigned int offered_bytes, void* ours) {
  const auto& wanted = *static_cast<const std::string*>(ours);
  unsigned char* found = nullptr;
  const int result = SSL_select_next_proto(
      &found, chosen_bytes, reinterpret_cast<const unsigned char*>(wanted.data()),
      static_cast<unsigned>(wanted.size()), offered, offered_bytes);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

std::shared_ptr<SSL_CTX> make_context(const SSL_METHOD* method, const TlsSide& side) {
  std::signal(SIGPIPE, SIG_IGN);
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(method), &SSL_CTX_free);
  SSL_CTX* raw = context.get();
  if (side.version != 0) {
    SSL_CTX_set_security_level(raw, 0);  // Old versions are tried in order to see them refused.
    SSL_CTX_set_min_proto_version(raw, side.version);
    SSL_CTX_set_max_proto_version(raw, side.version);
  }
  if (!side.certificate.empty()) {
    SSL_CTX_use_certificate_chain_file(raw, side.certificate.c_str());
    SSL_CTX_use_PrivateKey_file(raw, side.key.c_str(), SSL_FILETYPE_PEM);
  }
  if (!side.ca.empty()) {
    SSL_CTX_load_verify_locations(raw, side.ca.c_str(), nullptr);
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  }
  return context;
}

}  // namespace

std::shared_ptr<SSL_CTX> make_tls_server(const TlsSide& side) {
  auto context = make_context(TLS_server_method(), side);
  // Lives as long as the context; a test's server is not made often.
  static std::list<std::string> protocols;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (!side.alpn.empty()) {
    protocols.push_back(wire_form(side.alpn));
    SSL_CTX_set_alpn_select_cb(context.get(), choose, &protocols.back());
  }
  return context;
}

std::unique_ptr<TlsLayer> TlsLayer::accept(int fd, SSL_CTX* server) {
  const std::shared_ptr<SSL> session(SSL_new(server), &SSL_free);
  SSL_set_fd(session.get(), fd);
  ERR_clear_error();
  if (SSL_accept(session.get()) != 1) return nullptr;
  return std::unique_ptr<TlsLayer>(new TlsLayer(session));
}

std::unique_ptr<TlsLayer> TlsLayer::connect(int fd, const TlsSide& side) {
  const auto context = make_context(TLS_client_method(), side);
  const std::shared_ptr<SSL> session(SSL_new(context.get()), &SSL_free);
  if (!side.alpn.empty()) {
    const auto protocol = wire_form(side.alpn);
    SSL_set_alpn_protos(session.get(), reinterpret_cast<const unsigned char*>(protocol.data()),
                        static_cast<unsigned>(protocol.size()));
  }
  SSL_set_fd(session.get(), fd);
  if (!side.host.empty()) SSL_set_tlsext_host_name(session.get(), side.host.c_str());
  if (side.session) SSL_set_session(session.get(), side.session.get());
  ERR_clear_error();
  if (SSL_connect(session.get()) != 1) return nullptr;
  return std::unique_ptr<TlsLayer>(new TlsLayer(session));
}

bool TlsLayer::send_all(std::string_view bytes) {
  ERR_clear_error();
  return bytes.empty() ||
         SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
}

long TlsLayer::receive(char* to, std::size_t room) {
  ERR_clear_error();
  const int got = SSL_read(session_.get(), to, static_cast<int>(room));
  if (got > 0) return got;
  return SSL_get_error(session_.get(), got) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

void TlsLayer::say_end() { SSL_shutdown(session_.get()); }

std::string TlsLayer::behind_key_updates(int count, std::string_view last) {
  SSL* session = session_.get();
  BIO* records = BIO_new(BIO_s_mem());
  SSL_set0_wbio(session, records);
  for (int i = 0; i < count; ++i) {
    SSL_key_update(session, SSL_KEY_UPDATE_NOT_REQUESTED);
    SSL_do_handshake(session);
  }
  SSL_write(session, last.data(), static_cast<int>(last.size()));
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(records, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

std::string TlsLayer::alpn() const {
  const unsigned char* name = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(session_.get(), &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

std::string TlsLayer::version() const { return SSL_get_version(session_.get()); }

std::string TlsLayer::sni() const {
  const char* name = SSL_get_servername(session_.get(), TLSEXT_NAMETYPE_host_name);
  return name != nullptr ? name : "";
}

bool TlsLayer::resumed() const { return SSL_session_reused(session_.get()) == 1; }

std::shared_ptr<SSL_SESSION> TlsLayer::session() const {
  return {SSL_get1_session(session_.get()), &SSL_SESSION_free};
}

}  // namespace idem::test
