#pragma once

#include <expected>
#include <memory>
#include <string>

namespace idem::http {
class TlsContext;
}

namespace idem::cli {

struct GatewayOptions;

/// The certificates of the two listeners; null for one that serves plain HTTP.
struct Certificates {
  std::shared_ptr<const http::TlsContext> clients{};
  std::shared_ptr<const http::TlsContext> operators{};
};

/// Reads the files. Sessions of the certificates `before` can be resumed. The error is a sentence.
std::expected<Certificates, std::string> read_certificates(const GatewayOptions& options,
                                                           const Certificates& before);

}  // namespace idem::cli
