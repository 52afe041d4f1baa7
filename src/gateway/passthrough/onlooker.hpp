#pragma once

#include "gateway/forward.hpp"
#include "http/head.hpp"

#include <cstddef>
#include <string_view>

namespace idem::gateway {

/// Sees what passes through, and has no part in it. Its functions neither suspend nor block, and
/// what they cost is the loop's time alone. One request; its loop's thread.
class Onlooker {
 public:
  Onlooker() = default;
  Onlooker(const Onlooker&) = delete;
  Onlooker& operator=(const Onlooker&) = delete;
  virtual ~Onlooker() = default;

  /// A piece of the request's body, once each; valid during the call.
  virtual void request_piece(std::string_view piece) = 0;
  /// The client has sent all of the request, and it is on its way. Before the client gets the end
  /// of an answer; perhaps more than once.
  virtual void request_whole() = 0;

  /// Nothing of the request was sent.
  virtual void not_sent() = 0;
  struct Answer {
    const http::ResponseHead& head;  ///< The final one.
    const UpstreamAnswered& what;    ///< Of it, without a body.
    bool while_sending = false;
    bool is_stream = false;      ///< Its body is not meant to end.
    bool end_is_proven = false;  ///< A body until the close ends with TLS's own end.
  };
  virtual void answered(const Answer& answer) = 0;
  /// A piece of the answer's body, before the client gets it. `is_last` may come with no bytes.
  virtual void answer_piece(std::size_t bytes, bool is_last) = 0;
  /// How an answer that had begun, or did not come, ended too soon.
  enum class Loss : std::uint8_t { timeout, closed, malformed, cut };
  virtual void lost(Loss loss) = 0;
};

}  // namespace idem::gateway
