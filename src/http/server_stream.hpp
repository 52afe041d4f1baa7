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

  /// The TLS handshake, before the first request and within the time of a head. False: close.
  Task<bool> secure(const TlsContext& context);
  /// The client's name by its verified certificate (TlsSession::peer_identity()).
  const std::optional<std::string>& peer_identity() const noexcept { return peer_identity_; }
  /// The same with its whole name (TlsSession::peer_holder()).
  const std::optional<std::string>& peer_holder() const noexcept { return peer_holder_; }

  /// The other end of the TCP connection, never from a field; nothing where the client had gone
  /// before this stream was made.
  const std::optional<PeerAddress>& peer_address() const noexcept { return peer_address_; }

  /// Waits for the next request's head. False: no more requests; a refused one has been answered.
  Task<bool> next_request();
  const RequestHead& head() const noexcept { return head_; }
  /// Removes the field, and those that a server behind us might confuse with it (alike()), from the
  /// request. Not for a field that frames it.
  void drop_field(std::string_view name);

  /// The whole body, at most `bytes_max`, a large one in a file of `spill`; 100-continue is sent
  /// first where the client asks for it. Answer a refusal with refuse(): 503 when there is no room
  /// for the body; status 0 means that the client went away.
  Task<std::expected<ReceivedBody, Refusal>> read_body(std::size_t bytes_max, SpillSpace& spill);
  /// Sends 100-continue where the client asks for it and it is still due: a gateway in front of a
  /// keyed operation is the origin to its client (RFC 9110 §10.1.1). False: the client went away.
  Task<bool> invite_body();
  /// The next piece of a body that is relayed; empty at the end. Once the body was invited, another
  /// coroutine may write meanwhile.
  Task<std::expected<std::string_view, Refusal>> next_piece();
  bool body_finished() const noexcept { return body_.finished(); }
  /// All of the body is in the buffer: next_piece() would not wait.
  bool body_is_here() const noexcept { return body_.is_buffered(wire_); }
  /// The whole body, where it was framed by its length, has come already and nothing of it was read
  /// yet. Valid until it is read or the request is answered.
  std::optional<std::string_view> whole_body_here() const noexcept;

  /// The form of our own error answers from here on, refusals of this stream included.
  void errors_as(ErrorForm form) noexcept { error_form_ = form; }

  /// Sends an answer whole, framed for this request's method. False: the client went away.
  Task<bool> answer(const WireAnswer& answer);
  Task<bool> refuse(const Refusal& refusal);
  /// The status sent for the present request; 0: no answer was begun.
  int answered_status() const noexcept { return answered_ ? answered_status_ : 0; }

  /// How a streamed answer is framed towards the client.
  struct StreamFraming {
    Framing framing = Framing::none;
    std::uint64_t content_length = 0;
  };
  /// The first bytes of the body, sent together with the head in one write.
  struct StreamStart {
    std::string_view piece{};
    bool whole = false;  ///< It is all of the body: end_stream() has nothing left to do.
  };
  /// Sends the head of a streamed answer. Chunked becomes until-close for an HTTP/1.0 client.
  Task<bool> begin_stream(const WireAnswer& head, StreamFraming framing, StreamStart start);
  Task<bool> stream_piece(std::string_view piece);
  Task<bool> end_stream();
  /// The connection will be aborted without a proper end, so that the client sees a cut and no end.
  void abort_stream() noexcept { aborted_ = true; }
  /// The connection will be closed after this answer, which says so.
  void close_after() noexcept { keep_alive_ = false; }
  bool aborted() const noexcept { return aborted_; }
  /// Whose share of the LingerRoom this connection uses if it closes after the present request.
  void linger_as(std::string_view scope) { lingers_as_ = scope; }

  /// Passes a 101 on, which ends HTTP on this connection: from here on wire() is the caller's to
  /// read and write, and the connection closes after it. False: the client went away.
  Task<bool> switch_protocols(const WireAnswer& head, std::string_view protocols);
  Wire& wire() noexcept { return wire_; }

  /// Waits, with the request's body read, until unpark() or drain(). The client's next requests are
  /// kept meanwhile. False: it will send no more, so most likely it has hung up, and waiting for an
  /// answer has no use any longer.
  Task<bool> park();
  /// Ends park(), the next one if there is none now.
  void unpark() noexcept;

  /// Passes a 1xx answer on; silently not to an HTTP/1.0 client (RFC 9110 §15.2).
  Task<bool> interim(const WireAnswer& head);

  /// Makes the stream ready for the next request. False: close.
  Task<bool> finish_request();
  /// Closes so that no reset destroys the last answer (RFC 9112 §9.6): reads on while the client
  /// still sends, for long only where `room` has a place for it.
  Task<void> close(LingerRoom& room);
  /// Closes at once, so that the client sees an error and no end. After an answer that broke off
  /// (aborted()).
  void reset() noexcept;

  /// Waits for a request and has not seen a byte of it.
  bool idle() const noexcept { return idle_; }
  /// Ends an idle connection; a busy one closes after its answer. The rest of a request may take
  /// limits::drain_receive_max more, the rest of an answer limits::drain_send_max.
  void drain() noexcept;
  bool draining() const noexcept { return draining_; }
  /// From now on an answer ends the connection. It cuts nothing short.
  void leave() noexcept { leaving_ = true; }
  /// For streams without an end. While this lives, drain() also ends what is pending on this
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
  /// A connection to an upstream that is logged in for this client (connection_login.hpp): no other
  /// client's, and it ends with this one.
  struct OwnUpstream {
    bool has_been = false;         ///< There is one, or was.
    std::unique_ptr<Wire> wire{};  ///< Null: a request is on it, or it is gone.
  };
  OwnUpstream& own_upstream() noexcept { return own_upstream_; }
  Loop& loop() noexcept { return loop_; }

 private:
  enum class Reading : std::uint8_t { done, more, refused, gone };
  Task<bool> wait_for_head();
  // Deadlines for the client, earlier once the gateway is stopping; max: none.
  void receive_by(MonotonicTime at) noexcept;
  void send_by(MonotonicTime at) noexcept;
  void send_piece_by(Millis time) noexcept;
  Millis body_allowance() const noexcept;
  Task<bool> write_slowly(std::string_view head, std::string_view body);
  void append_head(const WireAnswer& answer, std::string_view framing_field);
  Refusal refusal_of(const BodyReader::Failure& failure) const noexcept;
  bool body_allowed(int status) const noexcept;
  bool can_linger() const noexcept;
  Task<void> linger(LingerRoom& room);

  Loop& loop_;
  Wire wire_;
  Options options_;
  std::optional<std::string> peer_identity_;
  std::optional<std::string> peer_holder_;
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
  std::string lingers_as_;                     ///< Empty: not known.
  std::optional<MonotonicTime> linger_until_;  ///< While the client's rest is read and dropped.
  OwnUpstream own_upstream_;
  Wire* cut_at_drain_ = nullptr;
  std::optional<Latch> full_;  ///< While parked behind a full buffer.
  bool parked_ = false;
  bool unparked_ = false;
  bool idle_ = false;
  bool draining_ = false;
  bool leaving_ = false;
  bool has_served_ = false;  ///< A whole head has come.
  bool keep_alive_ = false;
  bool continue_sent_ = false;
  bool answered_ = false;
  int answered_status_ = 0;  ///< Of the head that was sent last.
  bool chunked_out_ = false;
  bool stream_ended_ = false;
  bool suppress_body_ = false;
  bool aborted_ = false;
};

/// Of a body above the limit of read_body().
inline constexpr Refusal body_too_large{413, "the request body is larger than the limit"};

/// The problem that a refusal of the HTTP layer becomes.
Problem problem_of(const Refusal& refusal);

/// "OK" for 200; empty for a status without a registered phrase.
std::string_view reason_phrase(int status) noexcept;

}  // namespace idem::http
