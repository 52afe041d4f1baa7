#include "gateway/auth/authorizer.hpp"

#include "core/bytes/percent.hpp"
#include "core/exchange/answers.hpp"
#include "gateway/method_override.hpp"
#include "http/append.hpp"
#include "http/upstream_call.hpp"

#include <algorithm>
#include <array>

namespace idem::gateway {
namespace {

using http::append_field;
using http::UpstreamCall;

bool is_credential(const http::FieldView& field, const ScopeSource& source) {
  return field.known == http::FieldName::authorization || http::same_name(field.name, "Cookie") ||
         (source.kind == ScopeSource::Kind::header && http::same_name(field.name, source.name));
}

/// With two lines of one, the authoriser could look at the first and the upstream at the second.
bool has_two_of_one(const http::RequestHead& head) {
  const auto authorizations = std::ranges::count_if(
      head.fields, [](const auto& field) { return field.known == http::FieldName::authorization; });
  const auto cookies = std::ranges::count_if(
      head.fields, [](const auto& field) { return http::same_name(field.name, "Cookie"); });
  return authorizations > 1 || cookies > 1;
}

/// The answer of §13 for it: nothing ran, and the same key is safe.
WireAnswer no_verdict() {
  return to_answer(
      {.code = ProblemCode::store_unavailable,
       .detail =
           "The authorization service did not say whether the caller may do this. Nothing ran.",
       .retry_after = Millis(1000)});
}

WireAnswer refusal_of(const http::ResponseHead& head) {
  static constexpr std::array<std::string_view, 4> passed{"WWW-Authenticate", "Content-Type",
                                                          "Content-Encoding", "Content-Language"};
  WireAnswer answer{.status = head.status, .headers = {{"Cache-Control", "no-store"}}, .body = {}};
  for (const auto& field : head.fields) {
    const auto named = [&](std::string_view name) { return http::same_name(field.name, name); };
    if (std::ranges::any_of(passed, named)) {
      answer.headers.push_back({std::string(field.name), std::string(field.value)});
    }
  }
  return answer;
}

/// True for a body that clients of a route with Stripe's errors can read as an error.
bool names_error(std::string_view body) { return body.find("\"error\"") != body.npos; }

bool is_success(int status) noexcept { return status >= 200 && status < 300; }

/// The body whole, or nothing where it is too large, cut or late.
Task<std::optional<std::string>> small_body(UpstreamCall& call) {
  std::string body;
  while (!call.body().finished()) {
    const auto piece = co_await call.next_piece();
    if (!piece || body.size() + piece->size() > limits::authorize_body_bytes_max) {
      co_return std::nullopt;
    }
    body += *piece;
  }
  co_return body;
}

}  // namespace

std::optional<WireAnswer> refused_unasked(const http::RequestHead& head) {
  if (!has_two_of_one(head)) return std::nullopt;
  return to_answer({.code = ProblemCode::bad_request,
                    .detail = "Authorization or Cookie has more than one line."});
}

std::expected<AuthorizeSettings, std::string> parse_authorize_url(const std::string& url) {
  const auto scheme = url.find("://");
  const auto slash = scheme == std::string::npos ? scheme : url.find('/', scheme + 3);
  if (slash == std::string::npos) {
    return std::unexpected("\"" + url + "\" has no path; write http://HOST[:PORT]/PATH");
  }
  AuthorizeSettings settings;
  settings.target = url.substr(slash);
  const bool bad_byte = std::ranges::any_of(
      settings.target, [](char c) { return c <= ' ' || c >= 0x7F || c == '#'; });
  if (bad_byte) {
    return std::unexpected("\"" + url + "\" holds a byte that no path or query may hold");
  }
  auto address = http::parse_upstream_url(url.substr(0, slash));
  if (!address) return std::unexpected(std::move(address.error()));
  settings.address = std::move(*address);
  return settings;
}

Authorizer::Authorizer(Loop& loop, const GatewaySettings& settings, const Secret& secret,
                       Observer& observer)
    : settings_(*settings.authorize),
      via_name_(settings.via_name),
      secret_(secret),
      observer_(observer),
      pool_(loop, settings_.address,
            {std::min(settings.connect_timeout, settings_.timeout),
             settings.upstream_keep_alive_idle, settings_.tls}) {}

Task<std::optional<WireAnswer>> Authorizer::ask(const http::RequestHead& head,
                                                const ScopeSource& source,
                                                const std::string& scope) {
  using Refused = std::optional<WireAnswer>;
  if (auto refused = refused_unasked(head)) co_return Refused(std::move(refused));
  std::string request = "GET " + settings_.target + " HTTP/1.1\r\n";
  append_field(request, "Host", settings_.address.authority);
  append_field(request, "Via", "1.1 " + via_name_);
  append_field(request, "X-Original-Method", head.method);
  const MethodOverride other = override_of(head);
  // One that is not clear reaches no API (refused_by_override()), and may hold a line end.
  if (other.asked() && other.is_clear())
    append_field(request, "X-Original-Method-Override", other.method());
  append_field(request, "X-Original-URI", head.origin_form);
  append_field(request, "X-Original-Host", head.host);
  // A scope may hold any byte that a claim or a certificate's subject may.
  const auto is_plain = [](char c) { return c > ' ' && c <= '~' && c != '%'; };
  append_field(request, "Idem-Scope", percent_encoded(scope, is_plain));
  for (const auto& field : head.fields) {
    if (is_credential(field, source)) append_field(request, field.name, field.value);
  }
  request += "\r\n";
  if (settings_.cache <= Millis(0)) {
    auto refused = co_await over_network(request);
    co_return refused;
  }
  // The request holds everything that the authoriser sees, and no part of it can hold a line end.
  const std::string name = credential_digest(secret_, request);
  const MonotonicTime asked = MonotonicClock::now();
  if (allowed_.find(name, asked)) co_return Refused();
  auto refused = co_await over_network(request);
  if (!refused) allowed_.put(name, true, asked + settings_.cache);
  co_return refused;
}

Task<std::optional<WireAnswer>> Authorizer::over_network(const std::string& request) {
  using Refusal = std::optional<WireAnswer>;
  const MonotonicTime deadline = MonotonicClock::now() + settings_.timeout;
  auto wire = pool_.take_idle();
  if (wire) {
    auto reply = co_await over(wire, request, deadline);
    if (!reply.again) co_return std::move(reply.refusal);
  }
  auto fresh = co_await pool_.connect();
  if (!fresh) {
    observer_.authorizer_failed("not_reached", std::move(fresh.error().why));
    co_return Refusal(no_verdict());
  }
  auto reply = co_await over(*fresh, request, deadline);
  if (reply.again) observer_.authorizer_failed("closed", "it closed before it answered");
  co_return std::move(reply.refusal);
}

Task<Authorizer::Reply> Authorizer::over(std::unique_ptr<http::Wire>& wire,
                                         const std::string& request, MonotonicTime deadline) {
  UpstreamCall call(std::move(wire));
  call.wire().deadline(deadline);
  call.end_of_request();
  const UpstreamCall::InterimSink no_interim;
  auto going = co_await call.send(request);
  if (going) going = co_await call.read_head("GET", no_interim);
  if (!going) {
    const bool dead = (going.error() == UpstreamCall::Failure::nothing_sent ||
                       going.error() == UpstreamCall::Failure::closed) &&
                      call.wire().unread().empty();
    if (!dead) observer_.authorizer_failed("no_answer", "it gave no answer within its time");
    co_return Reply{no_verdict(), dead};
  }
  const int status = call.head().status;
  const bool refused = status == 401 || status == 403;
  Reply reply;
  if (refused || is_success(status)) {
    observer_.authorizer_answered(!refused);
  } else {
    observer_.authorizer_failed("status", "it answered " + std::to_string(status));
  }
  if (refused) {
    reply.refusal = refusal_of(call.head());
  } else if (!is_success(status)) {
    reply.refusal = no_verdict();
  }
  auto body = co_await small_body(call);
  if (refused && body) reply.refusal->body = std::move(*body);
  if (refused && !names_error(reply.refusal->body)) {
    reply.refusal->problem = std::make_shared<const Problem>(Problem{
        .code = ProblemCode::scope_missing, .detail = "The caller may not do this. Nothing ran."});
  }
  if (auto reusable = call.take_reusable()) pool_.give_back(std::move(reusable));
  co_return reply;
}

}  // namespace idem::gateway
