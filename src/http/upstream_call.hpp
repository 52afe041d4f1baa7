#pragma once

#include "http/body.hpp"
#include "http/upstream_pool.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace idem::http {

/// One request and its answer over one upstream connection. Knows what the kernel accepted, because
/// that is what a verdict about execution stands on (protocol.md §11). Loop's thread only.
class UpstreamCall {
 public:
  enum class Failure : std::uint8_t {
    nothing_sent,  ///< The kernel accepted zero bytes of the request: provably not executed.
    timeout,
    closed,     ///< Reset or EOF without a complete head.
    malformed,  ///< A head that is no strict HTTP, or a storm of interim answers.
  };
  /// Called for each interim answer worth passing on (not 100).
  using InterimSink = std::function<Task<void>(const ResponseHead&)>;

  explicit UpstreamCall(std::unique_ptr<Wire> wire)
      : wire_(std::move(wire)), bytes_out_before_(wire_->bytes_out()) {}

  /// Sends as much of the request as is needed to get a final answer and reads that answer's head.
  /// `head` and `body` must outlive the call. Ends at `deadline`; sends nothing after `not_after`.
  Task<std::expected<void, Failure>> run(std::string_view method, std::string_view head,
                                         std::string_view body, MonotonicTime not_after,
                                         MonotonicTime deadline, const InterimSink& on_interim);
  /// In parts, for a relayed body: send() ends when all was taken, or something came before that.
  Task<std::expected<void, Failure>> send(std::string_view first, std::string_view second = {},
                                          MonotonicTime not_after = MonotonicTime::max());
  Task<std::expected<void, Failure>> read_head(std::string_view method,
                                               const InterimSink& on_interim);

  /// The request carries an Upgrade: a 101 is then a final answer, and what follows it is no HTTP.
  void allow_switch() noexcept { may_switch_ = true; }

  /// What was given to send() so far is all of the request. Before that its connection is never
  /// used again: the upstream would take the next request for the rest of this one.
  void end_of_request() noexcept { request_ended_ = true; }

  const ResponseHead& head() const noexcept { return head_; }
  /// The final head came before the whole request had been handed to the kernel.
  bool answered_early() const noexcept { return early_; }
  /// An upstream may answer while it still reads, and end its answer only when it has read all (RFC
  /// 9112 §9.3). Where it does not say by its answer that it wants no more, it gets the rest.
  bool wants_rest() const noexcept { return head_.status < 400 && head_.keep_alive; }

  /// The next piece of the answer's body, as BodyReader::next(); what is still unsent goes on
  /// meanwhile.
  Task<std::expected<std::string_view, BodyReader::Failure>> next_piece();
  /// Gives the kernel as much of what is unsent as it takes now.
  void send_some();
  /// After the answer's end: what is unsent still goes on, as far as it is wanted.
  Task<void> finish_sending();
  /// What is unsent is now the caller's to write, and the end of the request to tell; and that it
  /// has stopped writing, in sender_stopped().
  std::pair<std::string_view, std::string_view> take_unsent() noexcept;
  void sender_stopped() noexcept { sent_elsewhere_ = false; }
  /// Between those two: the upstream may be waiting for us, and is not late.
  bool sent_elsewhere() const noexcept { return sent_elsewhere_; }

  /// Something of what was given to send() is still unsent.
  bool answered_while_sending() const noexcept {
    return !unsent_first_.empty() || !unsent_second_.empty();
  }
  BodyReader& body() noexcept { return body_; }
  const BodyReader& body() const noexcept { return body_; }
  Wire& wire() noexcept { return *wire_; }

  /// The connection, if it can carry another request: this one was sent and its answer read, both
  /// to their ends (RFC 9112 §9.3, P23); otherwise nothing, closed.
  std::unique_ptr<Wire> take_reusable();

 private:
  bool nothing_sent() const noexcept { return wire_->bytes_out() == bytes_out_before_; }
  void note_taken(std::size_t taken) noexcept;
  Failure failure() const noexcept;

  std::unique_ptr<Wire> wire_;
  ResponseHead head_;
  BodyReader body_;
  std::string_view unsent_first_;
  std::string_view unsent_second_;
  std::uint64_t bytes_out_before_;
  int interims_ = 0;
  bool early_ = false;
  bool request_ended_ = false;
  bool may_switch_ = false;
  bool sent_elsewhere_ = false;
};

}  // namespace idem::http
