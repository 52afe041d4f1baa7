#pragma once

#include "core/exchange/error_form.hpp"
#include "http/body.hpp"
#include "http/linger_room.hpp"
#include "http/network.hpp"
#include "http/received_body.hpp"
#include "loop/latch.hpp"

#include <idem/limits.hpp>

#include <optional>
#include <string>

namespace idem::http {

/// The server's side of one client connection: one request at a time, in order (RFC 9112 §9.3.2).
/// Loop's thread only.
class ServerStream {
 public:
  struct Options {
    Millis head_time = limits::head_time_default;
    Millis idle_time = limits::keep_alive_idle_default;
    Millis body_grace = limits::body_grace_default;
    Millis write_time = limits::write_time_default;
  };

  ServerStream(Loop& loop, Socket socket, const Options& options);

  /// Takes the client's side of TLS first, within the time that a head may take. False: close.
  Task<bool> secure(const TlsContext& context);
  /// Who the client's verified certificate says it is (TlsSession::peer_identity()).
  const std::optional<std::string>& peer_identity() const noexcept { return peer_identity_; }

  /// The other end of the TCP connection, whatever any field says; nothing where it had gone
  /// before it was asked for.
  const std::optional<PeerAddress>& peer_address() const noexcept { return peer_address_; }

  /// Waits for the next request's head. False: no more requests; a refused one has been answered.
  Task<bool> next_request();
  const RequestHead& head() const noexcept { return head_; }
  /// The request goes on as if it had no such field, nor one that a server behind us might take
  /// for it (alike()). Not one that frames it.
  void drop_field(std::string_view name);

  /// The whole body, at most `bytes_max`, the most of it in a file of `spill`; 100-continue is sent
  /// first where asked for. On a refusal answer with refuse(): 503 when there is nowhere to put it;
  /// status 0 stands for a client that went away.
  Task<std::expected<ReceivedBody, Refusal>> read_body(std::size_t bytes_max, SpillSpace& spill);
  /// Sends 100-continue where it is asked for and still due: a gateway in front of a keyed
  /// operation is the origin to its client (RFC 9110 §10.1.1). False: the client went away.
  Task<bool> invite_body();
  /// The next piece of a body that is relayed; empty at the end. Once the body was invited, another
  /// coroutine may write meanwhile.
  Task<std::expected<std::string_view, Refusal>> next_piece();
  bool body_finished() const noexcept { return body_.finished(); }
  /// next_piece() would not wait, and there would be no other.
  bool body_is_here() const noexcept { return body_.is_buffered(wire_); }
  /// The whole of a body that was framed by its length and of which nothing was read yet, where it
  /// has come already. Valid until it is read or the request is answered.
  std::optional<std::string_view> whole_body_here() const noexcept;

  /// How answers of our own are written from here on, refusals of this stream's included.
  void errors_as(ErrorForm form) noexcept { error_form_ = form; }

  /// Sends an answer whole, framed for this request's method. False: the client went away.
  Task<bool> answer(const Answer& answer);
  Task<bool> refuse(const Refusal& refusal);
  /// Of the answer to the present request; 0: none was begun.
  int answered_status() const noexcept { return answered_ ? answered_status_ : 0; }

  /// How a streamed answer is framed towards the client.
  struct StreamFraming {
    Framing framing = Framing::none;
    std::uint64_t content_length = 0;
  };
  /// What goes out together with the head, in one write.
  struct StreamStart {
    std::string_view piece{};
    bool whole = false;  ///< It is all of the body: end_stream() has nothing left to do.
  };
  /// Sends the head of a streamed answer. Chunked becomes until-close for an HTTP/1.0 client.
  Task<bool> begin_stream(const Answer& head, StreamFraming framing, StreamStart start);
  Task<bool> stream_piece(std::string_view piece);
  Task<bool> end_stream();
  /// The connection will be aborted without a proper end, so that nobody takes the cut for the end.
  void abort_stream() noexcept { aborted_ = true; }
  /// The connection will be closed after this answer, which says so.
  void close_after() noexcept { keep_alive_ = false; }
  bool aborted() const noexcept { return aborted_; }

  /// Passes a 101 on, which ends HTTP on this connection: from here on wire() is the caller's to
  /// read and write, and the connection closes after it. False: the client went away.
  Task<bool> switch_protocols(const Answer& head, std::string_view protocols);
  Wire& wire() noexcept { return wire_; }

  /// Waits, with the request's body read, until unpark() or drain(). What the client sends
  /// meanwhile are its next requests; they are kept. False: it will send no more, so most likely it
  /// has hung up, and no answer is worth waiting for any longer.
  Task<bool> park();
  /// Ends park(), the next one if there is none now.
  void unpark() noexcept;

  /// Passes a 1xx answer on; silently not to an HTTP/1.0 client (RFC 9110 §15.2).
  Task<bool> interim(const Answer& head);

  /// Makes the stream ready for the next request. False: close.
  Task<bool> finish_request();
  /// Closes so that the last answer is not lost to a reset (RFC 9112 §9.6): a client that still
  /// sends is read on, at length where `room` has a place for it.
  Task<void> close(LingerRoom& room);
  /// Closes at once, so that the client sees an error and no end: of an answer that was broken off
  /// (aborted()).
  void reset() noexcept;

  /// Waits for a request and has not seen a byte of it.
  bool idle() const noexcept { return idle_; }
  /// Ends an idle connection; a busy one closes after its answer. What of its request is not here
  /// yet has limits::drain_receive_max, and what it has not taken of an answer
  /// limits::drain_send_max.
  void drain() noexcept;
  bool draining() const noexcept { return draining_; }
  /// For what has no end of its own. While this lives, drain() also ends what is pending on this
  /// connection and on `other`; with no `other` it does nothing.
  class CutAtDrain {
   public:
    CutAtDrain(ServerStream& stream, Wire* other) noexcept : stream_(stream) {
      stream_.cut_at_drain_ = other;
    }
    ~CutAtDrain() { stream_.cut_at_drain_ = nullptr; }
    CutAtDrain(const CutAtDrain&) = delete;
    CutAtDrain& operator=(const CutAtDrain&) = delete;

   private:
    ServerStream& stream_;
  };
  Loop& loop() noexcept { return loop_; }

 private:
  enum class Reading : std::uint8_t { done, more, refused, gone };
  Task<bool> wait_for_head();
  // Deadlines of what is asked of the client, earlier once the gateway is stopping; max: none.
  void receive_by(MonotonicTime at) noexcept;
  void send_by(MonotonicTime at) noexcept;
  void send_piece_by(Millis time) noexcept;
  Millis body_allowance() const noexcept;
  Task<bool> write_slowly(std::string_view head, std::string_view body);
  void append_head(const Answer& answer, std::string_view framing_field);
  Refusal refusal_of(const BodyReader::Failure& failure) const noexcept;
  bool body_allowed(int status) const noexcept;
  bool can_linger() const noexcept;
  Task<void> linger(LingerRoom& room);

  Loop& loop_;
  Wire wire_;
  Options options_;
  std::optional<std::string> peer_identity_;
  std::optional<PeerAddress> peer_address_;
  RequestHead head_;
  BodyReader body_;
  ErrorForm error_form_ = ErrorForm::problem;
  std::string out_;
  std::size_t scanned_ = 0;
  Millis body_waited_{0};
  std::size_t body_received_ = 0;
  MonotonicTime receive_at_ = MonotonicTime::max();
  MonotonicTime receive_until_ = MonotonicTime::max();
  MonotonicTime send_at_ = MonotonicTime::max();
  MonotonicTime send_until_ = MonotonicTime::max();
  std::optional<MonotonicTime> linger_until_;  ///< While the client's rest is read and dropped.
  Wire* cut_at_drain_ = nullptr;
  std::optional<Latch> full_;  ///< While parked behind a full buffer.
  bool parked_ = false;
  bool unparked_ = false;
  bool idle_ = false;
  bool draining_ = false;
  bool keep_alive_ = false;
  bool continue_sent_ = false;
  bool answered_ = false;
  int answered_status_ = 0;  ///< Of the head that was sent last.
  bool chunked_out_ = false;
  bool stream_ended_ = false;
  bool suppress_body_ = false;
  bool aborted_ = false;
};

/// The problem that a refusal of the HTTP layer becomes.
Problem problem_of(const Refusal& refusal);

/// "OK" for 200; empty for a status without a registered phrase.
std::string_view reason_phrase(int status) noexcept;

}  // namespace idem::http
