#include "core/exchange/error_form.hpp"

#include <idem/assert.hpp>

namespace idem {
namespace {

using enum ProblemCode;

/// Stripe's `type`.
std::string_view type_of(ProblemCode code) {
  switch (code) {
    case key_reused:
    case in_progress:
    case key_expired:
      return "idempotency_error";
    case key_missing:
    case key_invalid:
    case scope_missing:
    case body_too_large:
    case quota_exceeded:
    case bad_request:
    case uri_too_long:
    case headers_too_large:
    case expectation_failed:
    case not_found:
    case invalid_request:
    case state_refused:
      return "invalid_request_error";
    case outcome_unknown:
    case upstream_unreachable:
    case attempt_released:
    case response_not_stored:
    case store_unavailable:
    case record_damaged:
    case request_timeout:
    case not_implemented:
    case version_not_supported:
    case loop_detected:
    case upstream_failed:
    case upstream_timeout:
    case draining:
    case overloaded:
      return "api_error";
  }
  return "api_error";
}

/// Stripe's `code` where its API has one for this, ours otherwise.
std::string_view code_of(const ProblemKind& kind) {
  if (kind.code == in_progress) return "idempotency_key_in_use";
  if (kind.code == quota_exceeded) return "rate_limit";
  return kind.name;
}

// Stripe's clients choose the class of an exception by the status first: only 400 and 404 become a
// StripeInvalidRequestError or, by their type, a StripeIdempotencyError; 401 and 429 have classes
// of their own, and all others are a StripeAPIError.
int status_of(ProblemCode code, int status) {
  switch (code) {
    case key_reused:
    case key_expired:
    case body_too_large:
    case uri_too_long:
    case headers_too_large:
    case expectation_failed:
      return 400;
    case key_missing:
    case key_invalid:
    case scope_missing:
    case in_progress:
    case outcome_unknown:
    case upstream_unreachable:
    case attempt_released:
    case response_not_stored:
    case store_unavailable:
    case record_damaged:
    case quota_exceeded:
    case bad_request:
    case request_timeout:
    case not_implemented:
    case version_not_supported:
    case loop_detected:
    case upstream_failed:
    case upstream_timeout:
    case draining:
    case overloaded:
    case not_found:
    case invalid_request:
    case state_refused:
      return status;
  }
  return status;
}

/// Said always: without it Stripe's clients repeat each 409 and each 5xx by themselves, also one of
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

Answer in_stripe_form(const Answer& answer, bool is_safe) {
  IDEM_ASSERT(answer.problem != nullptr);
  const Problem& problem = *answer.problem;
  const ProblemKind& kind = kind_of(problem.code);
  const RetryAdvice retry = problem.retry.value_or(kind.retry);
  std::string json = R"({"error":{)";
  add_text(json, "type", type_of(problem.code));
  add_text(json, "code", code_of(kind));
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
  Answer written{status_of(problem.code, answer.status), {}, std::move(json)};
  written.headers.push_back({"Content-Type", "application/json"});
  for (const Field& field : answer.headers) {
    if (!describes_body(field.name)) written.headers.push_back(field);
  }
  written.headers.push_back(
      {"Stripe-Should-Retry", should_retry(retry, is_safe) ? "true" : "false"});
  return written;
}

}  // namespace idem
