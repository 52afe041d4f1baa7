#pragma once

#include "core/exchange/problem.hpp"
#include "gateway/bounded_cache.hpp"
#include "gateway/observation.hpp"
#include "gateway/settings.hpp"
#include "http/upstream_pool.hpp"

#include <idem/fingerprint.hpp>

namespace idem::gateway {

/// The subrequest of protocol.md §6: asks a service of the operator's whether the caller may still
/// do what it asks for, so that who was revoked gets neither an execution nor a replay. It gets a
/// GET with `X-Original-Method`, `X-Original-URI`, `X-Original-Host` (which the upstream is sent as
/// Host), the caller's Authorization, Cookie and scope fields, and `Idem-Scope`: the scope as it
/// was verified, percent-encoded. Never the body or the key. One loop's thread.
class Authorizer {
 public:
  /// `settings.authorize` is set. `observer` outlives it and counts the answers.
  Authorizer(Loop& loop, const GatewaySettings& settings, const Secret& secret, Observer& observer);

  /// Nothing: 2xx, go on. Otherwise what the client hears: the authoriser's own 401 or 403, or 503
  /// when it said anything else or could not be asked.
  Task<std::optional<Answer>> ask(const http::RequestHead& head, const ScopeSource& source,
                                  const std::string& scope);

 private:
  struct Said {
    std::optional<Answer> refusal;
    bool again = false;  ///< A kept connection was dead; a new one may be tried (RFC 9112 §9.3.1).
  };
  Task<std::optional<Answer>> over_network(const std::string& request);
  Task<Said> over(std::unique_ptr<http::Wire>& wire, const std::string& request,
                  MonotonicTime deadline);

  const AuthorizeSettings settings_;
  const std::string via_name_;
  const Secret& secret_;
  Observer& observer_;
  http::UpstreamPool pool_;
  BoundedCache<bool> allowed_{limits::authorize_cache_entries_max};
};

}  // namespace idem::gateway
