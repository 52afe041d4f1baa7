#include "core/exchange/problem.hpp"

#include "core/bytes/json_string.hpp"
#include "core/exchange/answers.hpp"

#include <idem/assert.hpp>

#include <array>

namespace idem {
namespace {

using enum ProblemCode;
using enum RetryAdvice;

constexpr std::array<ProblemKind, problem_code_count> kinds{{
    {key_missing, "key_missing", 400, "This operation needs an Idempotency-Key", new_key_safe},
    {key_invalid, "key_invalid", 400, "The Idempotency-Key is malformed", new_key_safe},
    {scope_missing, "scope_missing", 401, "The request does not say who it belongs to", never},
    {key_reused, "key_reused", 422, "This key was used for another request", new_key_safe},
    {ProblemCode::in_progress, "in_progress", 409, "The first request with this key is running",
     later},
    {outcome_unknown, "outcome_unknown", 409, "It is not known whether the operation ran", never},
    {upstream_unreachable, "upstream_unreachable", 503, "The operation was not started", same_key},
    {attempt_released, "attempt_released", 503, "The attempt ended without running", same_key},
    {key_expired, "key_expired", 410, "The answer under this key has expired", never},
    {response_not_stored, "response_not_stored", 409, "The operation ran; its answer was not kept",
     never},
    {store_unavailable, "store_unavailable", 503, "The operation was not started", same_key},
    {record_damaged, "record_damaged", 503, "The record of this key is damaged", never},
    {request_not_storable, "request_not_storable", 500, "The store cannot hold this request",
     never},
    {body_too_large, "body_too_large", 413, "The request body is too large", never},
    {quota_exceeded, "quota_exceeded", 429, "Too many new keys", same_key},
    {bad_request, "bad_request", 400, "The request is not valid HTTP", never},
    {request_timeout, "request_timeout", 408, "The request took too long to arrive", never},
    {uri_too_long, "uri_too_long", 414, "The request target is too long", never},
    {headers_too_large, "headers_too_large", 431, "The request head is too large", never},
    {expectation_failed, "expectation_failed", 417, "The Expect field cannot be met", never},
    {not_implemented, "not_implemented", 501, "The request asks for something not served here",
     never},
    {version_not_supported, "version_not_supported", 505, "Only HTTP/1.1 and HTTP/1.0 are served",
     never},
    {loop_detected, "loop_detected", 508, "The request came back to this gateway", never},
    {upstream_failed, "upstream_failed", 502, "The upstream gave no valid answer", none},
    {upstream_timeout, "upstream_timeout", 504, "The upstream did not answer in time", none},
    {draining, "draining", 503, "The gateway is stopping", none},
    {loop_stalled, "loop_stalled", 503, "An event loop stands still", none},
    {not_found, "not_found", 404, "There is nothing here", never},
    {invalid_request, "invalid_request", 400, "The request cannot be understood", none},
    {state_refused, "state_refused", 409, "The record's state does not allow it", none},
    {overloaded, "overloaded", 503, "This caller has too much under way", same_key},
    {login_required, "login_required", 401, "The admin API needs a login", none},
    {role_missing, "role_missing", 403, "The caller's role does not allow it", none},
}};

std::string_view meaning_of(RetryAdvice advice) {
  switch (advice) {
    case none:
      return "The answer carries no advice about retries.";
    case new_key_safe:
      return "Nothing ran under this request: a corrected one with a new key is safe.";
    case same_key:
      return "Nothing ran: send the same request again with the same key.";
    case later:
      return "Ask again later with the same key; never with a new one.";
    case never:
      return "A retry gets the same answer until a person or evidence settles it.";
  }
  return "";
}

void append_member(std::string& out, std::string_view name, std::string_view text) {
  append_json_string(out, name);
  out += ':';
  append_json_string(out, text);
}

}  // namespace

const ProblemKind& kind_of(ProblemCode code) noexcept {
  const auto& kind = kinds[static_cast<std::size_t>(code)];
  IDEM_ASSERT(kind.code == code);
  return kind;
}

std::span<const ProblemKind> all_kinds() noexcept { return kinds; }

std::string_view name_of(RetryAdvice advice) noexcept {
  switch (advice) {
    case none:
      return "";
    case new_key_safe:
      return "new_key_safe";
    case same_key:
      return "same_key";
    case later:
      return "later";
    case never:
      return "never";
  }
  return "";
}

const ProblemKind* find_kind(std::string_view name) noexcept {
  for (const auto& kind : kinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

std::string explain(const ProblemKind& kind) {
  std::string page(kind.title);
  page += "\n\ncode: " + std::string(kind.name) + "\nusual status: " + std::to_string(kind.status);
  page += "\nusual advice (member \"retry\"): ";
  page += kind.retry == none ? "none" : name_of(kind.retry);
  page += "\n\n" + std::string(meaning_of(kind.retry)) + "\n";
  return page;
}

WireAnswer to_answer(const Problem& problem) {
  const ProblemKind& kind = kind_of(problem.code);
  const int status = problem.status.value_or(kind.status);
  const RetryAdvice retry = problem.retry.value_or(kind.retry);
  std::string body = "{";
  append_member(body, "type", "/.idem/problems/" + std::string(kind.name));
  body += ',';
  append_member(body, "title", kind.title);
  body += ",\"status\":" + std::to_string(status) + ',';
  if (!problem.detail.empty()) {
    append_member(body, "detail", problem.detail);
    body += ',';
  }
  append_member(body, "code", kind.name);
  if (problem.operation) {
    body += ',';
    append_member(body, "operation_ref", to_hex(problem.operation->bytes));
  }
  if (problem.state) {
    body += ',';
    append_member(body, "state", name_of(*problem.state));
  }
  if (problem.original_status) {
    body += ",\"original_status\":" + std::to_string(*problem.original_status);
  }
  if (retry != none) {
    body += ',';
    append_member(body, "retry", name_of(retry));
  }
  body += "}\n";
  WireAnswer answer{status, {}, std::move(body)};
  answer.problem = std::make_shared<const Problem>(problem);
  answer.headers.push_back({"Content-Type", "application/problem+json"});
  answer.headers.push_back({"Cache-Control", "no-store"});
  if (problem.retry_after) {
    answer.headers.push_back({"Retry-After", retry_after_text(*problem.retry_after)});
  }
  return answer;
}

}  // namespace idem
