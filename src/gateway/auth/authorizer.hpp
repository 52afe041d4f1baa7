#pragma once

#include "core/exchange/problem.hpp"
#include "gateway/bounded_cache.hpp"
#include "gateway/observation.hpp"
#include "gateway/settings.hpp"
#include "http/upstream_pool.hpp"

#include <idem/fingerprint.hpp>

namespace idem::gateway {

/// The refusal of a request about which no authoriser is asked; none: it is asked.
std::optional<WireAnswer> refused_unasked(const http::RequestHead& head);

/// The subrequest of protocol.md §6: asks the operator's service whether the caller is still
/// allowed, so that a revoked caller gets neither an execution nor a replay. The service gets a GET
/// with `X-Original-Method`, `X-Original-Method-Override` (where the head asks for another method),
/// `X-Original-URI`, `X-Original-Host` (the Host that the upstream gets), the caller's
/// Authorization, Cookie and scope fields, and `Idem-Scope`: the verified scope, percent-encoded.
/// Never the body or the key. One loop's thread.
class Authorizer {
 public:
  /// `settings.authorize` is set. `observer` outlives it and counts the answers.
  Authorizer(Loop& loop, const GatewaySettings& settings, const Secret& secret, Observer& observer);

  /// Nothing: 2xx, go on. Otherwise the answer for the client: the authoriser's own 401 or 403, or
  /// 503 when it answered anything else or could not be reached.
  Task<std::optional<WireAnswer>> ask(const http::RequestHead& head, const ScopeSource& source,
                                      const std::string& scope);

 private:
  struct Reply {
    std::optional<WireAnswer> refusal;
    bool again = false;  ///< A kept connection was dead; a new one may be tried (RFC 9112 §9.3.1).
  };
  Task<std::optional<WireAnswer>> over_network(const std::string& request);
  Task<Reply> over(std::unique_ptr<http::Wire>& wire, const std::string& request,
                   MonotonicTime deadline);

  const AuthorizeSettings settings_;
  const std::string via_name_;
  const Secret& secret_;
  Observer& observer_;
  http::UpstreamPool pool_;
  BoundedCache<bool> allowed_{limits::authorize_cache_entries_max};
};

}  // namespace idem::gateway
