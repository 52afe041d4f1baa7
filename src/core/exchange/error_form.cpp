#include "core/exchange/error_form.hpp"

#include "core/bytes/json_string.hpp"

#include <idem/assert.hpp>

#include <array>

namespace idem {
namespace {

using enum ProblemCode;

// Stripe's clients choose the class of an exception by the status first: only 400 and 404 become a
// StripeInvalidRequestError or, by their type, a StripeIdempotencyError; 401 and 429 have classes
// of their own, and all others are a StripeAPIError.
enum class StripeStatus : std::uint8_t { ours, as_400 };

/// How Stripe's API writes one of our problems.
struct StripeError {
  ProblemCode problem;
  std::string_view type;
  std::string_view code{};  ///< Stripe's, where its API has one for this; empty: ours.
  StripeStatus status = StripeStatus::ours;
};

constexpr std::string_view api = "api_error";
constexpr std::string_view idempotency = "idempotency_error";
constexpr std::string_view invalid = "invalid_request_error";
using enum StripeStatus;

constexpr std::array<StripeError, problem_code_count> stripe_errors{{
    {key_missing, invalid},
    {key_invalid, invalid},
    {scope_missing, invalid},
    {key_reused, idempotency, {}, as_400},
    {in_progress, idempotency, "idempotency_key_in_use"},
    {outcome_unknown, api},
    {upstream_unreachable, api},
    {attempt_released, api},
    {key_expired, idempotency, {}, as_400},
    {response_not_stored, api},
    {store_unavailable, api},
    {record_damaged, api},
    {request_not_storable, api},
    {body_too_large, invalid, {}, as_400},
    {quota_exceeded, invalid, "rate_limit"},
    {bad_request, invalid},
    {request_timeout, api},
    {uri_too_long, invalid, {}, as_400},
    {headers_too_large, invalid, {}, as_400},
    {expectation_failed, invalid, {}, as_400},
    {not_implemented, api},
    {version_not_supported, api},
    {loop_detected, api},
    {upstream_failed, api},
    {upstream_timeout, api},
    {draining, api},
    {loop_stalled, api},
    {not_found, invalid},
    {invalid_request, invalid},
    {state_refused, invalid},
    {overloaded, api},
    {login_required, invalid},
    {role_missing, invalid},
}};

constexpr bool is_indexed_by_problem() {
  for (std::size_t i = 0; i < stripe_errors.size(); ++i) {
    if (static_cast<std::size_t>(stripe_errors[i].problem) != i) return false;
  }
  return true;
}
static_assert(is_indexed_by_problem(), "one row for each code, in the order of ProblemCode");

/// Always sent: without it Stripe's clients repeat each 409 and each 5xx by themselves, also one of
/// a request that had no key and may have been executed.
bool should_retry(RetryAdvice advice, bool is_safe) {
  switch (advice) {
    case RetryAdvice::same_key:
    case RetryAdvice::later:
      return true;
    case RetryAdvice::new_key_safe:
    case RetryAdvice::never:
      return false;
    case RetryAdvice::none:
      return is_safe;
  }
  return false;
}

bool describes_body(std::string_view name) {
  return equal_names(name, "Content-Type") || equal_names(name, "Content-Encoding") ||
         equal_names(name, "Content-Language");
}

void add_text(std::string& json, std::string_view name, std::string_view value) {
  if (json.back() != '{') json += ',';
  append_json_string(json, name);
  json += ':';
  append_json_string(json, value);
}

}  // namespace

WireAnswer in_stripe_form(const WireAnswer& answer, bool is_safe) {
  IDEM_ASSERT(answer.problem != nullptr);
  const Problem& problem = *answer.problem;
  const ProblemKind& kind = kind_of(problem.code);
  const StripeError& stripe = stripe_errors[static_cast<std::size_t>(problem.code)];
  const RetryAdvice retry = problem.retry.value_or(kind.retry);
  std::string json = R"({"error":{)";
  add_text(json, "type", stripe.type);
  add_text(json, "code", stripe.code.empty() ? kind.name : stripe.code);
  add_text(json, "message", problem.detail.empty() ? kind.title : problem.detail);
  add_text(json, "doc_url", "/.idem/problems/" + std::string(kind.name));
  add_text(json, "idem_code", kind.name);
  if (problem.operation) add_text(json, "operation_ref", to_hex(problem.operation->bytes));
  if (problem.state) add_text(json, "state", name_of(*problem.state));
  if (problem.original_status) {
    json += ",\"original_status\":" + std::to_string(*problem.original_status);
  }
  if (retry != RetryAdvice::none) add_text(json, "retry", name_of(retry));
  json += "}}\n";
  WireAnswer written{stripe.status == as_400 ? 400 : answer.status, {}, std::move(json)};
  written.headers.push_back({"Content-Type", "application/json"});
  for (const Field& field : answer.headers) {
    if (!describes_body(field.name)) written.headers.push_back(field);
  }
  written.headers.push_back(
      {"Stripe-Should-Retry", should_retry(retry, is_safe) ? "true" : "false"});
  return written;
}

}  // namespace idem
