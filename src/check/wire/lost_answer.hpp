#pragma once

#include "check/wire/connection.hpp"

#include <expected>
#include <future>
#include <string>

namespace idem::check {

/// A proxy between a client and the API, for one request: delivers it, reads the API's whole
/// answer, and closes the client's connection without a byte of it. So a client loses an answer in
/// the field: the operation was executed, and the client does not know.
class LostAnswer {
 public:
  /// Listens on a free port of the loopback interface. The error is a sentence part.
  static std::expected<LostAnswer, std::string> listen(const Origin& api,
                                                       std::chrono::milliseconds timeout,
                                                       bool insecure);
  LostAnswer(LostAnswer&&) noexcept;
  ~LostAnswer();  ///< Waits for the request's end.

  /// Where a client connects to.
  const Origin& origin() const noexcept { return here_; }
  /// What the API answered; the client never had it. Waits for it.
  std::expected<Answer, std::string> answer() { return answer_.get(); }

 private:
  LostAnswer(int listener, Origin here);

  int listener_;
  Origin here_;
  std::future<std::expected<Answer, std::string>> answer_;
};

}  // namespace idem::check
