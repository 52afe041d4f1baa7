#pragma once

#include "gateway/auth/authorizer.hpp"
#include "gateway/auth/scope.hpp"

namespace idem::gateway {

/// The answer to a request whose scope cannot be read; `detail` says why.
WireAnswer scope_missing(const GatewaySettings& settings, std::string detail);

/// The scope of one request, and whether its caller is allowed (protocol.md §6). Checked before
/// anything else, and again before later decisions: a body or a wait takes as long as the client
/// likes, and meanwhile a token may expire, a caller be revoked or a key be removed from the
/// configuration. One loop's thread; all arguments must outlive it.
class Authority {
 public:
  /// `authorizer`: null where there is none. Each check reads it and `settings` again: it uses
  /// those of now, not those with which the request began.
  Authority(ScopeReader& scopes, const std::shared_ptr<Authorizer>& authorizer,
            const http::ServerStream& client, const SharedSettings& settings)
      : scopes_(scopes),
        authorizer_(authorizer),
        client_(client),
        settings_(settings),
        scope_(scopes.take_room()) {
    scope_.clear();
  }
  ~Authority() { scopes_.give_back(std::move(scope_)); }
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  /// Nothing: go on. Otherwise the answer for the client.
  Task<std::optional<WireAnswer>> check();
  /// The same, where the last successful check is older than limits::authority_age_max or used
  /// other settings. Another scope than before is refused.
  Task<std::optional<WireAnswer>> check_again();

  /// Empty before the first successful check.
  const std::string& scope() const noexcept { return scope_; }

 private:
  ScopeReader& scopes_;
  const std::shared_ptr<Authorizer>& authorizer_;
  const http::ServerStream& client_;
  const SharedSettings& settings_;
  std::string scope_;
  SharedSettings checked_by_;
  Millis checked_at_{};
};

}  // namespace idem::gateway
