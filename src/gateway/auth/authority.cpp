#include "gateway/auth/authority.hpp"

#include "core/record/store_clock.hpp"

namespace idem::gateway {
namespace {

using Refusal = std::optional<WireAnswer>;

}  // namespace

WireAnswer scope_missing(const GatewaySettings& settings, std::string detail) {
  WireAnswer answer = to_answer({.code = ProblemCode::scope_missing, .detail = std::move(detail)});
  // RFC 6750 §3: names the kind of credential that is accepted.
  if (settings.scope.kind == ScopeSource::Kind::jwt) {
    answer.headers.push_back({"WWW-Authenticate", "Bearer"});
  }
  return answer;
}

Task<Refusal> Authority::check() {
  const Millis asked_at = uptime();
  const SharedSettings settings = settings_;  // Kept for this request, whatever a reload does.
  if (!is_scope_trusted(client_, settings->scope)) {
    co_return Refusal(
        scope_missing(*settings, "The scope field of this peer is not trusted. Nothing ran."));
  }
  auto scope = scopes_.read(client_.head(), client_.peer_identity(), *settings);
  if (!scope) co_return Refusal(scope_missing(*settings, std::move(scope.error())));
  if (!scope_.empty() && *scope != scope_) {
    co_return Refusal(scope_missing(*settings, "The request now belongs to another scope."));
  }
  const bool is_first = scope_.empty();
  scope_ = *scope;
  if (const auto authorizer = authorizer_) {
    auto refusal = co_await authorizer->ask(client_.head(), settings->scope, scope_);
    if (refusal && is_first) scope_.clear();
    if (refusal) co_return refusal;
  }
  checked_at_ = asked_at;
  checked_by_ = settings;
  co_return Refusal();
}

Task<Refusal> Authority::check_again() {
  const bool is_fresh = uptime() - checked_at_ <= limits::authority_age_max;
  if (is_fresh && checked_by_ == settings_) co_return Refusal();
  auto refusal = co_await check();
  co_return refusal;
}

}  // namespace idem::gateway
