#pragma once

#include "gateway/auth/authorizer.hpp"
#include "gateway/auth/scope.hpp"

namespace idem::gateway {

/// Who asks, and whether they may (protocol.md §6). Found out before anything else is looked at,
/// and once more by whoever decides something much later: a body or a wait takes as long as the
/// client likes, and a token may expire, a caller be revoked or a key be taken out of the
/// configuration meanwhile. One loop's thread; all that it is given must outlive it.
class Authority {
 public:
  /// `authorizer`: null where nobody is asked. Both it and `settings` are looked at anew by each
  /// check: they are those of now, not those that the request began with.
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

  /// Nothing: go on. Otherwise what the client hears.
  Task<std::optional<Answer>> check();
  /// The same, where the last yes is older than limits::authority_age_max or was one by other
  /// settings. Another scope than before is a no.
  Task<std::optional<Answer>> check_again();

  /// Who; empty before the first yes.
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
