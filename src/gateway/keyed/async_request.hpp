#pragma once

#include "core/record/stored_request.hpp"
#include "gateway/keyed/request_parts.hpp"
#include "gateway/settings.hpp"
#include "http/head.hpp"
#include "tracing/trace.hpp"

#include <idem/store.hpp>

#include <expected>
#include <memory>
#include <string>

/// A request as bytes for the store, and back.
namespace idem::gateway {

/// True where this request is to be stored and run later: by its route's mode, or because the
/// client asked for it and its route permits that.
bool is_async(const http::RequestHead& head, const Route& route);

/// True for a field whose value lets its reader act as the caller: the scope's, those of RFC 9110
/// §11 and RFC 6265, and fields with a name of that kind.
bool is_credential(std::string_view name, const GatewaySettings& settings);

/// The end-to-end part of a request. The key and the credentials that the route keeps are sealed
/// (sealing.hpp); all other credentials are left out. With `trace` its traceparent replaces the
/// client's: the run continues the accept.
std::string request_to_store(const http::RequestHead& head, const RequestParts& request,
                             const RecordId& id, const Identity& identity,
                             const GatewaySettings& settings, const Route& route,
                             const std::optional<tracing::Outgoing>& trace = {});

/// A stored request, as if it had just come. Cannot be moved: its parts are views into it.
class RestoredRequest {
 public:
  /// The error is a sentence for the operator.
  static std::expected<std::unique_ptr<RestoredRequest>, std::string> read(
      Claimed& claimed, const Identity& identity, const GatewaySettings& settings);

  RestoredRequest(const RestoredRequest&) = delete;
  RestoredRequest& operator=(const RestoredRequest&) = delete;

  const http::RequestHead& head() const noexcept { return head_; }
  std::string_view body() const noexcept { return body_; }
  const Route& route() const noexcept { return *route_; }

 private:
  RestoredRequest() = default;
  void make_head(const StoredRequest& stored, const RequestSecrets& secrets);

  std::string bytes_;
  std::string secret_bytes_;
  http::RequestHead head_;
  std::string_view body_;
  const Route* route_ = nullptr;  ///< One of the settings that it was read with.
};

}  // namespace idem::gateway
