#include "cli/commands/certificates.hpp"

#include "cli/settings/gateway_options.hpp"
#include "http/tls/tls.hpp"

namespace idem::cli {
namespace {

using Certificate = std::shared_ptr<const http::TlsContext>;

std::expected<Certificate, std::string> read_certificate(const http::TlsContext::ServerFiles& files,
                                                         const http::TlsContext* before) {
  if (files.certificate.empty()) return Certificate{};
  auto context = http::TlsContext::for_server(files, before);
  if (!context) return std::unexpected("TLS: " + context.error());
  return std::move(*context);
}

}  // namespace

std::expected<Certificates, std::string> read_certificates(const GatewayOptions& options,
                                                           const Certificates& before) {
  auto clients = read_certificate(options.tls, before.clients.get());
  if (!clients) return std::unexpected(clients.error());
  auto operators = read_certificate(options.admin_tls, before.operators.get());
  if (!operators) return std::unexpected("admin: " + operators.error());
  return Certificates{std::move(*clients), std::move(*operators)};
}

}  // namespace idem::cli
