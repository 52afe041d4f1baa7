#pragma once

#include "core/fingerprint/method_override.hpp"
#include "gateway/keyed/request_parts.hpp"
#include "gateway/settings.hpp"
#include "http/head.hpp"

#include <idem/fingerprint.hpp>
#include <idem/store.hpp>

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::gateway {

/// The reserve for a request: its ids and fingerprints under each live secret, also under the
/// former names of its route. `route` is one of `settings`. On a shadow route it finds and makes
/// records of such routes only, which count for no quota, name no provider, hold no key, and are
/// released when their lease ends: nothing is ever sent for them, so none becomes unknown. Refused:
/// the body asks for another method (refused_by_override()).
std::expected<Reserve, http::Refusal> make_reserve(const http::RequestHead& head,
                                                   const RequestParts& request,
                                                   const Identity& identity,
                                                   const GatewaySettings& settings,
                                                   const Route& route);

/// The same, unless that means to read more than `bytes_max` bytes, encoded or decoded: then none,
/// and another thread should.
std::optional<std::expected<Reserve, http::Refusal>> make_reserve_within(
    std::size_t bytes_max, const http::RequestHead& head, const RequestParts& request,
    const Identity& identity, const GatewaySettings& settings, const Route& route);

/// What the fingerprint of a request reads, as views into `head`, `body` and `route`, and the
/// content of an encoded body where the route lets that count. If it holds more than the route's
/// limit, is malformed, or has several codings, the bytes count. Of a JSON-RPC call the id does not
/// count where the route says so.
class Fingerprinted {
 public:
  Fingerprinted(const http::RequestHead& head, std::string_view body, const Route& route);
  /// Decodes `decoded_max` bytes at most.
  Fingerprinted(const http::RequestHead& head, std::string_view body, const Route& route,
                std::size_t decoded_max);
  Fingerprinted(const Fingerprinted&) = delete;
  Fingerprinted& operator=(const Fingerprinted&) = delete;

  const FingerprintParts& parts() const noexcept { return parts_; }
  /// The body holds more than `decoded_max`.
  bool is_cut() const noexcept { return is_cut_; }
  const MethodOverride& asked() const noexcept { return asked_; }

 private:
  void decode(const Route& route, std::size_t decoded_max);

  std::vector<std::string_view> chosen_;
  std::vector<std::string_view> codings_;
  MethodOverride asked_;
  std::string method_;  ///< With what was asked for in its place; otherwise unused.
  FingerprintParts parts_;
  std::string decoded_;
  EncodedBody as_sent_{};
  FingerprintRule without_id_{};
  bool is_cut_ = false;
};

/// Every id that a record of a request with this key may have, the one for a new record first.
/// `kind`: of the records that requests of a route with this setting find.
std::vector<RecordId> possible_ids(const http::RequestHead& head, const Identity& identity,
                                   const GatewaySettings& settings, const Route& route,
                                   const std::string& scope, const std::string& key, Enforce kind);

}  // namespace idem::gateway
