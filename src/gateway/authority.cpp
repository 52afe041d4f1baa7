#include "gateway/authority.hpp"

#include "core/store_clock.hpp"

namespace idem::gateway {
namespace {

using Refusal = std::optional<Answer>;

Answer scope_missing(const GatewaySettings& settings, std::string detail) {
  Answer answer = to_answer({.code = ProblemCode::scope_missing, .detail = std::move(detail)});
  // RFC 6750 §3: what kind of credential would have been taken.
  if (settings.scope.kind == ScopeSource::Kind::jwt) {
    answer.headers.push_back({"WWW-Authenticate", "Bearer"});
  }
  return answer;
}

}  // namespace

Task<Refusal> Authority::check() {
  const Millis asked_at = uptime();
  auto scope = scopes_.read(client_, settings_);
  if (!scope) co_return Refusal(scope_missing(settings_, std::move(scope.error())));
  if (!scope_.empty() && *scope != scope_) {
    co_return Refusal(scope_missing(settings_, "The request belongs to somebody else by now."));
  }
  const bool is_first = scope_.empty();
  scope_ = *scope;
  if (authorizer_) {
    auto refusal = co_await authorizer_->ask(client_.head(), settings_.scope, scope_);
    if (refusal && is_first) scope_.clear();
    if (refusal) co_return refusal;
  }
  checked_at_ = asked_at;
  co_return Refusal();
}

Task<Refusal> Authority::check_again() {
  if (uptime() - checked_at_ <= limits::authority_age_max) co_return Refusal();
  auto refusal = co_await check();
  co_return refusal;
}

}  // namespace idem::gateway
