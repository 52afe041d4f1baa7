#include "http/tls/error.hpp"
#include "http/tls/tls.hpp"

#include <idem/record.hpp>

#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>

namespace idem::http {
namespace {

constexpr std::size_t record_bytes_max = 16UL * 1024;
// OpenSSL reads on until it has bytes for us. A peer that sends only TLS's own messages (KeyUpdate,
// RFC 8446 §4.6.3) would hold the whole loop: after so many reads the others come first.
constexpr int reads_per_call_max = 1;

using PeerCertificate = std::unique_ptr<X509, decltype(&X509_free)>;

/// As DER, because the text form loses details.
std::string der_of(const X509_NAME* name) {
  unsigned char* bytes = nullptr;
  const int size = i2d_X509_NAME(name, &bytes);
  if (size <= 0) return {};
  std::string der(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

std::string name_text(const X509_NAME* name) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> out(BIO_new(BIO_s_mem()), &BIO_free_all);
  if (X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253) < 0) return {};
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out.get(), &bytes);
  return {bytes, static_cast<std::size_t>(std::max(size, 0L))};
}

/// The authority in which the verified chain ends, by name and key, because an authority can have
/// the name of another. Not the issuer: that is often an intermediate one, and those change without
/// notice.
std::string anchor_of(const SSL* session) {
  const STACK_OF(X509)* chain = SSL_get0_verified_chain(session);
  const int size = chain != nullptr ? sk_X509_num(chain) : 0;
  if (size == 0) return {};
  const X509* anchor = sk_X509_value(chain, size - 1);
  unsigned char* key = nullptr;
  const int key_size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(anchor), &key);
  if (key_size <= 0) return {};
  std::string both = der_of(X509_get_subject_name(anchor));
  both.append(reinterpret_cast<const char*>(key), static_cast<std::size_t>(key_size));
  OPENSSL_free(key);
  return both;
}

std::string first_uri(const X509* certificate) {
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  std::string uri;
  for (int i = 0; i < sk_GENERAL_NAME_num(names) && uri.empty(); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_STRING* text = name->d.uniformResourceIdentifier;
    uri.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
               static_cast<std::size_t>(ASN1_STRING_length(text)));
  }
  GENERAL_NAMES_free(names);
  return uri;
}

std::string digest_of(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::array<std::uint8_t, 16> half{};
  std::copy_n(digest.begin(), half.size(), half.begin());
  return to_hex(half);
}

/// Safe to show in a log line and a listing.
std::string printable(std::string text) {
  constexpr std::size_t shown_max = 128;
  text.resize(std::min(text.size(), shown_max));
  std::ranges::replace_if(text, [](char c) { return c <= ' ' || c > '~'; }, '_');
  return text;
}

}  // namespace

TlsSession::TlsSession(ssl_st* session) : session_(session) {
  BIO* bio = SSL_get_rbio(session_);
  BIO_set_callback_arg(bio, reinterpret_cast<char*>(this));
  BIO_set_callback_ex(bio, &TlsSession::before_io);
}

// Bytes that stay in the kernel keep the socket readable, so holding back forgets none.
long TlsSession::before_io(BIO* bio, int operation, const char*, std::size_t, int, long, int result,
                           std::size_t*) {
  auto* self = reinterpret_cast<TlsSession*>(BIO_get_callback_arg(bio));
  if (operation != BIO_CB_READ || self->reads_left_-- > 0) return result;
  self->held_back_ = true;
  BIO_set_retry_read(bio);
  return -1;
}

std::unique_ptr<TlsSession> TlsSession::accept(const TlsContext& context, int socket) {
  SSL* session = SSL_new(context.get());
  SSL_set_fd(session, socket);
  SSL_set_accept_state(session);
  return std::unique_ptr<TlsSession>(new TlsSession(session));
}

std::unique_ptr<TlsSession> TlsSession::connect(const TlsContext& context, int socket,
                                                const std::string& host, SSL_SESSION* ticket) {
  SSL* session = SSL_new(context.get());
  SSL_set_fd(session, socket);
  SSL_set_connect_state(session);
  const bool is_address = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str()) == 1;
  if (!is_address) {
    // RFC 6066 §3: without the dot that makes a name absolute.
    const std::string name = host.ends_with('.') ? host.substr(0, host.size() - 1) : host;
    SSL_set_hostflags(session, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_set1_host(session, name.c_str());
    SSL_set_tlsext_host_name(session, name.c_str());
  }
  if (ticket != nullptr) SSL_set_session(session, ticket);
  return std::unique_ptr<TlsSession>(new TlsSession(session));
}

// Drops what OpenSSL has not yet written. A session that ends without close_notify can still be
// resumed.
TlsSession::~TlsSession() {
  SSL_set_shutdown(session_, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  SSL_free(session_);
}

TlsSession::Wants TlsSession::wants_after(int result) {
  switch (SSL_get_error(session_, result)) {
    case SSL_ERROR_NONE:
      return Wants::nothing;
    case SSL_ERROR_WANT_READ:
      return Wants::readable;
    case SSL_ERROR_WANT_WRITE:
      return Wants::writable;
    case SSL_ERROR_ZERO_RETURN:
      return Wants::ended;
    default:
      break;
  }
  const bool verifies = SSL_get_verify_mode(session_) != SSL_VERIFY_NONE;
  const long verified = verifies ? SSL_get_verify_result(session_) : long{X509_V_OK};
  why_ = verified == X509_V_OK ? last_tls_error() : X509_verify_cert_error_string(verified);
  clear_tls_errors();
  return Wants::failed;
}

void TlsSession::begin_call() {
  clear_tls_errors();
  reads_left_ = reads_per_call_max;
  held_back_ = false;
}

TlsSession::Wants TlsSession::handshake() {
  begin_call();
  return wants_after(SSL_do_handshake(session_));
}

TlsSession::Moved TlsSession::read(char* to, std::size_t room) {
  begin_call();
  Moved moved;
  moved.wants = wants_after(SSL_read_ex(session_, to, room, &moved.bytes));
  return moved;
}

TlsSession::Moved TlsSession::write(std::string_view bytes) {
  begin_call();
  Moved moved;
  const std::size_t size = std::min(bytes.size(), record_bytes_max);
  moved.wants = wants_after(SSL_write_ex(session_, bytes.data(), size, &moved.bytes));
  return moved;
}

TlsSession::Wants TlsSession::peek() {
  begin_call();
  char byte = 0;
  std::size_t seen = 0;
  return wants_after(SSL_peek_ex(session_, &byte, 1, &seen));
}

TlsSession::Wants TlsSession::send_close_notify() {
  begin_call();
  const int result = SSL_shutdown(session_);
  // 0: the peer has not sent its close_notify yet.
  return result >= 0 ? Wants::nothing : wants_after(result);
}

std::uint64_t TlsSession::bytes_out() const noexcept {
  return BIO_number_written(SSL_get_wbio(session_));
}

bool TlsSession::resumed() const noexcept { return SSL_session_reused(session_) == 1; }

std::optional<std::string> TlsSession::peer_identity() const {
  const PeerCertificate certificate(SSL_get1_peer_certificate(session_), &X509_free);
  if (!certificate || SSL_get_verify_result(session_) != X509_V_OK) return std::nullopt;
  const X509_NAME* subject = X509_get_subject_name(certificate.get());
  const std::string uri = first_uri(certificate.get());
  const bool has_subject = X509_NAME_entry_count(subject) > 0;
  if (uri.empty() && !has_subject) return std::nullopt;
  const std::string shown = uri.empty() ? name_text(subject) : uri;
  const std::string anchor = anchor_of(session_);
  if (anchor.empty()) return std::nullopt;
  const std::string holder = uri.empty() ? "subject " + der_of(subject) : "uri " + uri;
  // The length keeps the two apart.
  return printable(shown) + '#' + digest_of(std::to_string(anchor.size()) + ' ' + anchor + holder);
}

std::optional<std::string> TlsSession::peer_holder() const {
  const PeerCertificate certificate(SSL_get1_peer_certificate(session_), &X509_free);
  if (!certificate || SSL_get_verify_result(session_) != X509_V_OK) return std::nullopt;
  if (const std::string uri = first_uri(certificate.get()); !uri.empty()) return "uri:" + uri;
  const X509_NAME* subject = X509_get_subject_name(certificate.get());
  if (X509_NAME_entry_count(subject) == 0) return std::nullopt;
  return "subject:" + name_text(subject);
}

TlsTicket TlsSession::ticket() const {
  TlsTicket ticket(SSL_get1_session(session_), &SSL_SESSION_free);
  if (ticket && SSL_SESSION_is_resumable(ticket.get()) != 1) ticket.reset();
  return ticket;
}

}  // namespace idem::http
