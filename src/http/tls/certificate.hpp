#pragma once

#include "http/tls/tls.hpp"

#include <chrono>
#include <expected>
#include <string>
#include <vector>

namespace idem::http {

/// What people have to know of a certificate. Moments are seconds since the Unix epoch.
struct Certificate {
  std::string subject;
  std::vector<std::string> names;  ///< Its DNS names and IP addresses.
  std::int64_t not_before = 0;
  std::int64_t not_after = 0;
};

/// All certificates of a PEM file, at least one. The error is a sentence that names the file.
std::expected<std::vector<Certificate>, std::string> read_certificates(const std::string& file);

/// How a handshake ended.
struct TlsProbe {
  std::string why_not;              ///< Empty: it succeeded, and the certificate is good.
  std::optional<Certificate> peer;  ///< Also where it is not good; none: there was no handshake.
};

/// A client's handshake over a connected socket that does not block; sends nothing else. Blocks for
/// `timeout` at most. Safe from any thread.
TlsProbe probe_tls(const TlsContext& context, int socket, const std::string& host,
                   std::chrono::milliseconds timeout);

}  // namespace idem::http
