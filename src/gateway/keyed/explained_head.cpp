#include "gateway/keyed/explained_head.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem::gateway {
namespace {

bool has_line_end(std::string_view text) noexcept {
  return text.find_first_of("\r\n") != text.npos;
}

std::string at_header(std::size_t place, std::string_view complaint) {
  return "/headers/" + std::to_string(place) + ": " + std::string(complaint);
}

/// The body comes beside the head, so a length in the head must be that of the body.
bool has_other_length(const Field& field, std::size_t bytes) {
  return http::same_name(field.name, "Content-Length") && field.value != std::to_string(bytes);
}

}  // namespace

std::optional<std::string> ExplainedHead::why_not(const RequestInQuestion& request) {
  if (has_line_end(request.method)) return "/method: holds a line end";
  if (has_line_end(request.target)) return "/target: holds a line end";
  if (request.scope &&
      (request.scope->empty() || request.scope->size() > limits::scope_bytes_max)) {
    return "/scope: must have 1 to " + std::to_string(limits::scope_bytes_max) + " bytes";
  }
  for (std::size_t i = 0; i < request.headers.size(); ++i) {
    const Field& field = request.headers[i];
    if (field.name.empty()) return at_header(i, "has no name");
    if (has_line_end(field.name) || has_line_end(field.value)) {
      return at_header(i, "holds a line end: write one field for each line");
    }
    if (field.name.contains(':')) return at_header(i, "has a colon in its name");
    if (has_other_length(field, request.body.size())) {
      return at_header(i, "Content-Length differs from the body, which has " +
                              std::to_string(request.body.size()) + " bytes; leave it out");
    }
  }
  return std::nullopt;
}

ExplainedHead::ExplainedHead(const RequestInQuestion& request) {
  text_ = request.method + ' ' + request.target + " HTTP/1.1\r\n";
  const bool has_host = std::ranges::any_of(
      request.headers, [](const Field& field) { return http::same_name(field.name, "Host"); });
  if (!has_host) text_ += "Host: localhost\r\n";
  for (const Field& field : request.headers) text_ += field.name + ": " + field.value + "\r\n";
  text_ += "\r\n";
}

std::expected<void, http::Refusal> ExplainedHead::parse() {
  std::size_t scanned = 0;
  const auto parsed = http::parse_request_head(text_, scanned, head_);
  if (!parsed) return std::unexpected(parsed.error());
  // All of the head is there, so that a parser which asks for more has met no end of it.
  if (!*parsed) return std::unexpected(http::Refusal{400, "the head has no end"});
  return {};
}

}  // namespace idem::gateway
