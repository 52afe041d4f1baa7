#include "http/tls/certificate.hpp"

#include "http/tls/error.hpp"

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>
#include <poll.h>

#include <array>
#include <memory>

namespace idem::http {
namespace {

using Owned = std::unique_ptr<X509, decltype(&X509_free)>;
using Clock = std::chrono::steady_clock;

std::string text_of(const X509_NAME* name) {
  std::array<char, 512> text{};
  X509_NAME_oneline(name, text.data(), static_cast<int>(text.size()));
  return text.data();
}

std::int64_t seconds_of(const ASN1_TIME* time) {
  std::tm fields{};
  if (ASN1_TIME_to_tm(time, &fields) != 1) return 0;
  return ::timegm(&fields);
}

std::string text_of(const GENERAL_NAME* name) {
  int kind = 0;
  const auto* const value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(name, &kind));
  if (kind != GEN_DNS && kind != GEN_IPADD) return {};
  const auto* const bytes = ASN1_STRING_get0_data(value);
  const auto size = static_cast<std::size_t>(ASN1_STRING_length(value));
  if (kind == GEN_DNS) return {reinterpret_cast<const char*>(bytes), size};
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = size == 4 ? AF_INET : AF_INET6;
  if (size != 4 && size != 16) return {};
  return ::inet_ntop(family, bytes, text.data(), text.size()) != nullptr ? text.data() : "";
}

Certificate facts_of(const X509* certificate) {
  Certificate facts{.subject = text_of(X509_get_subject_name(certificate)),
                    .names = {},
                    .not_before = seconds_of(X509_get0_notBefore(certificate)),
                    .not_after = seconds_of(X509_get0_notAfter(certificate))};
  auto* const names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names); ++i) {
    auto text = text_of(sk_GENERAL_NAME_value(names, i));
    if (!text.empty()) facts.names.push_back(std::move(text));
  }
  GENERAL_NAMES_free(names);
  return facts;
}

/// False: the time is over.
bool wait_for(int socket, int error, Clock::time_point until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  pollfd one{};
  one.fd = socket;
  one.events = error == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
  return left.count() > 0 && ::poll(&one, 1, static_cast<int>(left.count())) == 1;
}

}  // namespace

std::expected<std::vector<Certificate>, std::string> read_certificates(const std::string& file) {
  clear_tls_errors();
  const std::unique_ptr<BIO, decltype(&BIO_free)> in(BIO_new_file(file.c_str(), "r"), &BIO_free);
  std::vector<Certificate> found;
  while (in) {
    const Owned one(PEM_read_bio_X509_AUX(in.get(), nullptr, nullptr, nullptr), &X509_free);
    if (!one) break;
    found.push_back(facts_of(one.get()));
  }
  if (found.empty()) return std::unexpected(file + ": " + last_tls_error());
  clear_tls_errors();
  return found;
}

TlsProbe probe_tls(const TlsContext& context, int socket, const std::string& host,
                   std::chrono::milliseconds timeout) {
  const auto until = Clock::now() + timeout;
  const std::unique_ptr<SSL, decltype(&SSL_free)> session(SSL_new(context.get()), &SSL_free);
  TlsProbe probe;
  if (!session || SSL_set_fd(session.get(), socket) != 1) return {last_tls_error(), {}};
  const bool is_address =
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()), host.c_str()) == 1;
  if (!is_address) {
    SSL_set_hostflags(session.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_set1_host(session.get(), host.c_str());
    SSL_set_tlsext_host_name(session.get(), host.c_str());
  }
  // The certificate is judged below, because a refused one could not be shown.
  SSL_set_verify(session.get(), SSL_VERIFY_NONE, nullptr);
  clear_tls_errors();
  for (int result = SSL_connect(session.get()); result != 1; result = SSL_connect(session.get())) {
    const int error = SSL_get_error(session.get(), result);
    const bool waits = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    if (!waits)
      return {error == SSL_ERROR_SYSCALL ? "it closed the connection" : last_tls_error(), {}};
    if (!wait_for(socket, error, until)) return {"no handshake in time", {}};
  }
  if (const Owned peer(SSL_get1_peer_certificate(session.get()), &X509_free); peer) {
    probe.peer = facts_of(peer.get());
  }
  const long verified = SSL_get_verify_result(session.get());
  if (context.verifies() && verified != X509_V_OK) {
    probe.why_not = X509_verify_cert_error_string(verified);
  }
  return probe;
}

}  // namespace idem::http
