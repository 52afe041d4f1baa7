#include "http/server_stream.hpp"

#include <utility>

namespace idem::http {

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
      // Otherwise a body that found no room; when there is some again nobody can tell.
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
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 103:
      return "Early Hints";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 203:
      return "Non-Authoritative Information";
    case 204:
      return "No Content";
    case 205:
      return "Reset Content";
    case 206:
      return "Partial Content";
    case 300:
      return "Multiple Choices";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 411:
      return "Length Required";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 425:
      return "Too Early";
    case 428:
      return "Precondition Required";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    case 508:
      return "Loop Detected";
    default:
      return "";
  }
}

}  // namespace idem::http
