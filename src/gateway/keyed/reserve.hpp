#pragma once

#include "gateway/keyed/request_parts.hpp"
#include "gateway/settings.hpp"
#include "http/head.hpp"

#include <idem/fingerprint.hpp>
#include <idem/store.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace idem::gateway {

/// The reserve for a request: its ids and fingerprints under each live secret, also under the
/// former names of its route. `route` is one of `settings`.
Reserve make_reserve(const http::RequestHead& head, const RequestParts& request,
                     const Identity& identity, const GatewaySettings& settings, const Route& route);

/// What the fingerprint of a request reads, as views into `head`, `body` and `rule`.
class Fingerprinted {
 public:
  Fingerprinted(const http::RequestHead& head, std::string_view body, const FingerprintRule& rule);
  Fingerprinted(const Fingerprinted&) = delete;
  Fingerprinted& operator=(const Fingerprinted&) = delete;

  const FingerprintParts& parts() const noexcept { return parts_; }

 private:
  std::vector<std::string_view> chosen_;
  std::vector<std::string_view> codings_;
  FingerprintParts parts_;
};

/// Every id that a record of a request with this key may have, the one for a new record first.
std::vector<RecordId> possible_ids(const http::RequestHead& head, const Identity& identity,
                                   const GatewaySettings& settings, const Route& route,
                                   const std::string& scope, const std::string& key);

}  // namespace idem::gateway
