#include "http/server_stream.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace idem::http {
namespace {

struct ReasonPhrase {
  std::size_t status;
  std::string_view text;
};

/// Those of the IANA registry that an upstream or the gateway sends.
constexpr ReasonPhrase reason_phrases[]{
    {100, "Continue"},
    {101, "Switching Protocols"},
    {103, "Early Hints"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {425, "Too Early"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {508, "Loop Detected"},
};

constexpr std::size_t statuses_end = 600;

constexpr auto phrases_by_status = [] {
  std::array<std::string_view, statuses_end> phrases{};
  for (const ReasonPhrase& phrase : reason_phrases) phrases[phrase.status] = phrase.text;
  return phrases;
}();

}  // namespace

Problem problem_of(const Refusal& refusal) {
  Problem problem;
  problem.detail = refusal.detail;
  switch (refusal.status) {
    case 408:
      problem.code = ProblemCode::request_timeout;
      break;
    case 413:
      problem.code = ProblemCode::body_too_large;
      break;
    case 414:
      problem.code = ProblemCode::uri_too_long;
      break;
    case 417:
      problem.code = ProblemCode::expectation_failed;
      break;
    case 431:
      problem.code = ProblemCode::headers_too_large;
      break;
    case 501:
      problem.code = ProblemCode::not_implemented;
      break;
    case 503:
      // Otherwise there is no room for a body, and no time is known after which there will be some.
      problem.code = refusal.stopping ? ProblemCode::draining : ProblemCode::store_unavailable;
      problem.retry = RetryAdvice::same_key;
      problem.retry_after = Millis(1000);
      break;
    case 505:
      problem.code = ProblemCode::version_not_supported;
      break;
    default:
      problem.code = ProblemCode::bad_request;
      break;
  }
  return problem;
}

std::string_view reason_phrase(int status) noexcept {
  const auto at = static_cast<std::size_t>(status);
  return at < phrases_by_status.size() ? phrases_by_status[at] : std::string_view();
}

}  // namespace idem::http
