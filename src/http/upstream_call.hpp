#pragma once

#include "http/body.hpp"
#include "http/upstream_pool.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace idem::http {

/// One request and its answer over one upstream connection. Counts the bytes that the kernel
/// accepted: with none, the request was provably not executed (protocol.md §11). Loop's thread
/// only.
class UpstreamCall {
 public:
  enum class Failure : std::uint8_t {
    nothing_sent,  ///< The kernel accepted zero bytes of the request: provably not executed.
    timeout,
    closed,     ///< Reset or EOF without a complete head.
    malformed,  ///< A head that is not strict HTTP, or too many interim answers.
  };
  /// Called for each interim answer worth passing on (not 100).
  using InterimSink = std::function<Task<void>(const ResponseHead&)>;

  explicit UpstreamCall(std::unique_ptr<Wire> wire)
      : wire_(std::move(wire)), bytes_out_before_(wire_->bytes_out()) {}

  /// Sends the request until a final answer comes, and reads the head of that answer.
  /// `head` and `body` must outlive the call. Ends at `deadline`; sends nothing after `not_after`.
  Task<std::expected<void, Failure>> run(std::string_view method, std::string_view head,
                                         std::string_view body, MonotonicTime not_after,
                                         MonotonicTime deadline, const InterimSink& on_interim);
  /// In parts, for a relayed body, the first of which begins with the head: send() ends when the
  /// kernel has accepted all, or when bytes of an answer come before.
  Task<std::expected<void, Failure>> send(std::string_view first, std::string_view second = {},
                                          MonotonicTime not_after = MonotonicTime::max());
  Task<std::expected<void, Failure>> read_head(std::string_view method,
                                               const InterimSink& on_interim);

  /// The request carries an Upgrade: a 101 is then a final answer, and HTTP ends behind it.
  void allow_switch() noexcept { may_switch_ = true; }

  /// send() has got all of the request. Before this call the connection is never used again: the
  /// upstream would read the next request as the rest of this one.
  void end_of_request() noexcept { request_ended_ = true; }

  const ResponseHead& head() const noexcept { return head_; }
  /// The final head came before the whole request had been handed to the kernel.
  bool answered_early() const noexcept { return early_; }
  /// An upstream may answer while it still reads, and end its answer only when it has read all (RFC
  /// 9112 §9.3). It gets the rest unless its answer shows that it does not want it.
  bool wants_rest() const noexcept { return head_.status < 400 && head_.keep_alive; }

  /// The next piece of the answer's body, as BodyReader::next(); sends the rest of the request
  /// meanwhile.
  Task<std::expected<std::string_view, BodyReader::Failure>> next_piece();
  /// Gives the kernel as much of the unsent rest as it accepts now.
  void send_some();
  /// After the answer's end: sends the rest of the request, where the upstream wants it.
  Task<void> finish_sending();
  /// Gives the unsent rest to the caller, which has to write it, to call end_of_request() behind
  /// the last byte, and sender_stopped() once it writes no more.
  std::pair<std::string_view, std::string_view> take_unsent() noexcept;
  void sender_stopped() noexcept { sent_elsewhere_ = false; }
  /// Between take_unsent() and sender_stopped(): the upstream may be waiting for us, and is not
  /// late.
  bool sent_elsewhere() const noexcept { return sent_elsewhere_; }

  /// Bytes that send() has got are still unsent.
  bool answered_while_sending() const noexcept {
    return !unsent_first_.empty() || !unsent_second_.empty();
  }
  BodyReader& body() noexcept { return body_; }
  const BodyReader& body() const noexcept { return body_; }
  Wire& wire() noexcept { return *wire_; }

  /// The connection, if it can carry a request of anybody: all of this one was sent and all of its
  /// answer read (RFC 9112 §9.3, P23), and neither logs the connection in (connection_login.hpp).
  /// Otherwise nothing, and the connection is closed. `of_one_client`: it carries no other client's
  /// requests, and may be logged in.
  std::unique_ptr<Wire> take_reusable(bool of_one_client = false);

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
  bool logs_in_ = false;
  bool sent_elsewhere_ = false;
};

}  // namespace idem::http
