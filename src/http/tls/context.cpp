#include "http/tls/error.hpp"
#include "http/tls/tls.hpp"

#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace idem::http {
namespace {

// As ALPN carries it: a length, then the name (RFC 7301 §3.1).
constexpr unsigned char alpn_http_1_1[] = "\x08http/1.1";
constexpr unsigned int alpn_bytes = sizeof alpn_http_1_1 - 1;
// Only tickets with this context are resumed here.
constexpr unsigned char session_context[] = "idem";

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using Made = std::expected<std::shared_ptr<const TlsContext>, std::string>;

std::unexpected<std::string> complaint(const std::string& file) {
  return std::unexpected(file + ": " + last_tls_error());
}

// OpenSSL would ask for a passphrase on the terminal, and a gateway has none.
int no_passphrase(char*, int, int, void*) { return 0; }

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_bytes,
                    const unsigned char* offered, unsigned int offered_bytes, void*) {
  unsigned char* found = nullptr;
  const int result = SSL_select_next_proto(&found, chosen_bytes, alpn_http_1_1, alpn_bytes, offered,
                                           offered_bytes);
  if (result != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

Context make_context(const SSL_METHOD* method) {
  Context context(SSL_CTX_new(method), &SSL_CTX_free);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // The machine's configuration may have set it, and then a cut would look like an end.
  SSL_CTX_clear_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  // Idle connections hold no record buffers; a record that was accepted in part may come again
  // from another address.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_default_passwd_cb(context.get(), no_passphrase);
  return context;
}

std::expected<void, std::string> ask_for_certificates(SSL_CTX* context, const std::string& ca) {
  if (SSL_CTX_load_verify_locations(context, ca.c_str(), nullptr) != 1) return complaint(ca);
  STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(ca.c_str());
  if (names == nullptr) return complaint(ca);
  SSL_CTX_set_client_CA_list(context, names);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context, 0);
  return {};
}

void keep_ticket_keys(SSL_CTX* context, SSL_CTX* before) {
  const auto size = SSL_CTX_get_tlsext_ticket_keys(before, nullptr, 0);
  std::array<unsigned char, 256> keys{};
  if (size <= 0 || static_cast<std::size_t>(size) > keys.size()) return;
  if (SSL_CTX_get_tlsext_ticket_keys(before, keys.data(), size) == 1) {
    SSL_CTX_set_tlsext_ticket_keys(context, keys.data(), size);
  }
  OPENSSL_cleanse(keys.data(), keys.size());
}

}  // namespace

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

Made TlsContext::for_server(const ServerFiles& files, const TlsContext* before) {
  clear_tls_errors();
  Context context = make_context(TLS_server_method());
  SSL_CTX* raw = context.get();
  if (SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1) {
    return complaint(files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(raw, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return complaint(files.key);
  }
  if (SSL_CTX_check_private_key(raw) != 1) return complaint(files.key);
  SSL_CTX_set_alpn_select_cb(raw, choose_protocol, nullptr);
  // Sessions live in their tickets alone; a cache would be one more thing that grows.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_id_context(raw, session_context, sizeof session_context - 1);
  SSL_CTX_set_num_tickets(raw, 1);
  SSL_CTX_set_max_early_data(raw, 0);
  if (!files.client_ca.empty()) {
    if (const auto asked = ask_for_certificates(raw, files.client_ca); !asked) {
      return std::unexpected(asked.error());
    }
  } else if (before != nullptr) {
    keep_ticket_keys(raw, before->get());
  }
  return std::shared_ptr<const TlsContext>(
      new TlsContext(context.release(), !files.client_ca.empty()));
}

Made TlsContext::for_client(const ClientFiles& files) {
  clear_tls_errors();
  Context context = make_context(TLS_client_method());
  SSL_CTX* raw = context.get();
  if (!files.ca.empty()) {
    if (SSL_CTX_load_verify_locations(raw, files.ca.c_str(), nullptr) != 1) {
      return complaint(files.ca);
    }
  } else if (SSL_CTX_set_default_verify_paths(raw) != 1) {
    return complaint("the system's certificates");
  }
  SSL_CTX_set_verify(raw, files.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_alpn_protos(raw, alpn_http_1_1, alpn_bytes);
  return std::shared_ptr<const TlsContext>(new TlsContext(context.release(), files.verify));
}

}  // namespace idem::http
