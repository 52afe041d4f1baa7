#pragma once

#include <idem/record.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The answers that Idem itself gives (protocol.md §13), as RFC 9457 problem documents.
namespace idem {

struct Problem;

/// An answer ready for the wire, framing aside.
struct WireAnswer {
  int status = 0;
  std::vector<Field> headers;
  std::string body;
  /// Instead of `body`: the bytes of one stored answer that several clients get at once.
  std::shared_ptr<const std::string> shared_body{};
  /// The problem, if Idem made this answer: it may be written in another form (error_form.hpp).
  std::shared_ptr<const Problem> problem{};
  /// Of a replay: the span of the request whose answer it is, as a traceparent; empty: none was
  /// recorded. Never sent.
  std::string ran_in{};
  /// Of a replay: its JSON-RPC `id` is that of the first request. Never sent.
  bool answers_rpc = false;

  std::string_view body_bytes() const noexcept { return shared_body ? *shared_body : body; }
};

enum class ProblemCode : std::uint8_t {
  key_missing,
  key_invalid,
  scope_missing,
  key_reused,
  in_progress,
  outcome_unknown,
  upstream_unreachable,
  attempt_released,
  key_expired,
  response_not_stored,
  store_unavailable,
  record_damaged,
  request_not_storable,
  body_too_large,
  quota_exceeded,
  bad_request,
  request_timeout,
  uri_too_long,
  headers_too_large,
  expectation_failed,
  not_implemented,
  version_not_supported,
  loop_detected,
  upstream_failed,
  upstream_timeout,
  draining,
  loop_stalled,
  not_found,
  invalid_request,
  state_refused,
  overloaded,
  login_required,
  role_missing,
};
inline constexpr std::size_t problem_code_count =
    static_cast<std::size_t>(ProblemCode::role_missing) + 1;  // the last one's

/// The `retry` member: what the client may do.
enum class RetryAdvice : std::uint8_t { none, new_key_safe, same_key, later, never };

struct Problem {
  ProblemCode code{};
  std::string detail{};         ///< For people; never repeats a key, a body or a credential.
  std::optional<int> status{};  ///< Instead of the code's usual one (outcome_unknown: 502, 504).
  std::optional<RetryAdvice> retry{};
  std::optional<RecordId> operation{};
  std::optional<State> state{};
  std::optional<Millis> retry_after{};  ///< Rounded up to whole seconds, at least 1.
  std::optional<int> original_status{};
};

struct ProblemKind {
  ProblemCode code;
  std::string_view name;
  int status;
  std::string_view title;
  RetryAdvice retry;
};
const ProblemKind& kind_of(ProblemCode code) noexcept;
/// One for each code, in the order of ProblemCode.
std::span<const ProblemKind> all_kinds() noexcept;
/// By its name, e.g. "key_reused"; null when there is none.
const ProblemKind* find_kind(std::string_view name) noexcept;
/// The `retry` member's value; empty for none.
std::string_view name_of(RetryAdvice advice) noexcept;
/// A page for people: what happened and what the client may do.
std::string explain(const ProblemKind& kind);

/// The problem as an answer: status, `Content-Type: application/problem+json`, `Cache-Control:
/// no-store`, Retry-After if set, body. Members without a value are left out, never null.
WireAnswer to_answer(const Problem& problem);

}  // namespace idem
