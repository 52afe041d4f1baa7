#pragma once

#include "gateway/passthrough/onlooker.hpp"
#include "http/server_stream.hpp"
#include "http/upstream_call.hpp"
#include "loop/latch.hpp"

#include <idem/assert.hpp>

#include <memory>
#include <optional>

namespace idem::gateway {

/// The body of a relayed request on its way to the upstream, in a coroutine of its own, so that an
/// answer is seen whenever it comes (RFC 9112 §9.3) and both can be long. One of stop() and
/// finish() has to end before this object and its arguments go. Loop's thread only.
class Upload {
 public:
  /// `onlooker`: null, or it sees what start() sends.
  Upload(http::ServerStream& client, http::UpstreamCall& call, Millis upstream_timeout,
         Onlooker* onlooker)
      : client_(client), call_(call), upstream_timeout_(upstream_timeout), onlooker_(onlooker) {}
  ~Upload() { IDEM_ASSERT(!ended_ || ended_->is_open()); }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  /// The head was given to the call, and the client was asked for its body.
  void start();
  bool started() const noexcept { return ended_ != nullptr; }
  /// The answer's head has come. Until then this object sets the deadline for it.
  void answered() noexcept { answered_ = true; }
  /// Sends the piece that is under way, and no more.
  void wind_up() noexcept { stopped_ = true; }
  /// Waits until all is sent, or sending has failed.
  Task<void> finish();
  /// Ends at once, and with it the upstream's connection unless all was sent before. The client's
  /// can still be written to.
  Task<void> stop();
  /// Why the client's body broke off before the answer came; reading the answer has then failed.
  const std::optional<http::Refusal>& refused() const noexcept { return refused_; }

  /// The client's body broke off after the answer had begun, so the upstream may cut its answer.
  bool broke_off() const noexcept { return broke_off_; }

  /// A piece of the client's body, framed for the upstream; valid until the next one.
  std::string_view framed(std::string_view piece);

 private:
  Task<void> run(std::shared_ptr<Latch> ended);
  Task<bool> write(std::string_view first, std::string_view second = {});
  Task<void> give_up(http::Refusal why);

  http::ServerStream& client_;
  http::UpstreamCall& call_;
  const Millis upstream_timeout_;
  Onlooker* const onlooker_;
  std::shared_ptr<Latch> ended_;
  std::optional<http::Refusal> refused_;
  std::string chunk_;
  bool answered_ = false;
  bool broke_off_ = false;
  bool stopped_ = false;
};

}  // namespace idem::gateway
