#pragma once

#include "core/exchange/explanation.hpp"
#include "http/head.hpp"

#include <expected>
#include <optional>
#include <string>

namespace idem::gateway {

/// The head of a request in question as bytes, for the parser of requests.
class ExplainedHead {
 public:
  /// The error is a sentence that names the place: a part that no client can send.
  static std::optional<std::string> why_not(const RequestInQuestion& request);

  /// After why_not(). A request without Host gets one: no client sends none, and it decides
  /// nothing.
  explicit ExplainedHead(const RequestInQuestion& request);

  /// What the gateway's parser says. After success head() is valid while this lives.
  std::expected<void, http::Refusal> parse();
  const http::RequestHead& head() const noexcept { return head_; }

 private:
  std::string text_;
  http::RequestHead head_;
};

}  // namespace idem::gateway
