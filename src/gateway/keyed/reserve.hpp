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
/// former names of its route. `route` is one of `settings`. On a shadow route it finds and makes
/// records of such routes only, which count for no quota, name no provider, hold no key, and are
/// released when their lease ends: nothing is ever sent for them, so none becomes unknown.
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
/// `kind`: of the records that requests of a route with this setting find.
std::vector<RecordId> possible_ids(const http::RequestHead& head, const Identity& identity,
                                   const GatewaySettings& settings, const Route& route,
                                   const std::string& scope, const std::string& key, Enforce kind);

}  // namespace idem::gateway
