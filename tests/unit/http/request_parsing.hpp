#pragma once

#include "http/head.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace idem::http::test_requests {

struct ParsedRequest {
  std::shared_ptr<const std::string> buffer;  ///< The bytes of the head's views.
  int status = 0;                             ///< Of the refusal; 0 where there was none.
  std::string detail;
  bool complete = false;
  std::size_t bytes = 0;
  RequestHead head;
};

inline ParsedRequest parse(std::string_view bytes) {
  ParsedRequest parsed;
  parsed.buffer = std::make_shared<const std::string>(bytes);
  std::size_t scanned = 0;
  const HeadResult result = parse_request_head(*parsed.buffer, scanned, parsed.head);
  if (!result) {
    parsed.status = result.error().status;
    parsed.detail = result.error().detail;
  } else if (*result) {
    parsed.complete = true;
    parsed.bytes = **result;
  }
  return parsed;
}

/// A request with a Host and these field lines, each without its CRLF.
inline std::string request(const std::vector<std::string>& lines,
                           std::string_view start = "POST / HTTP/1.1") {
  std::string text = fmt::format("{}\r\nHost: example.com\r\n", start);
  for (const auto& line : lines) text += line + "\r\n";
  return text + "\r\n";
}

inline int status_of(const std::string& bytes) { return parse(bytes).status; }

inline bool accepted(const std::string& bytes) { return parse(bytes).complete; }

}  // namespace idem::http::test_requests
