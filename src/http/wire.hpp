#pragma once

#include "http/tls/tls.hpp"
#include "loop/loop.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace idem::http {

/// A TCP connection, plain or with TLS on it, with one read buffer and one deadline. The buffer
/// never moves while a message is pinned, so views into a parsed head stay valid until unpin().
/// Loop's thread only.
class Wire final : public Timed {
 public:
  /// With TLS, an end that the peer did not announce (close_notify) is `reset`, not `eof`.
  enum class Trouble : std::uint8_t { none, eof, timeout, reset };

  Wire(Loop& loop, Socket socket);
  ~Wire() override;

  /// Puts TLS on the connection, before anything else is read or written. False: see trouble() and
  /// tls()->why().
  Task<bool> secure(std::unique_ptr<TlsSession> session);
  /// Null for a plain connection.
  TlsSession* tls() const noexcept { return tls_.get(); }
  /// True where no third party can cause Trouble::eof by a cut (RFC 9112 §9.8).
  bool end_is_proven() const noexcept { return tls_ != nullptr; }

  std::string_view unread() const noexcept { return {buffer_.get() + begin_, end_ - begin_}; }
  /// The bytes stay where they are until the next read_some() or unpin().
  void consume(std::size_t bytes) noexcept { begin_ += bytes; }
  /// read_some() would find no room.
  bool is_full() const noexcept { return pin_ + (end_ - begin_) == buffer_bytes; }
  /// Keeps everything before unread() in place.
  void pin() noexcept { pin_ = begin_; }
  /// Forgets the pinned bytes and moves unread() to the front.
  void unpin() noexcept;

  /// Waits for bytes and appends them to unread(). 0: see trouble(). Consumed bytes behind the pin
  /// may be overwritten.
  Task<std::size_t> read_some();

  /// Gives the kernel as many bytes as it accepts now; never waits. 0 with trouble() none: try
  /// later.
  std::size_t write_now(std::string_view first, std::string_view second = {}) noexcept;
  /// Bytes that the kernel accepted so far, TLS's own included: while this has not grown, no byte
  /// of a write has left (protocol.md §11).
  std::uint64_t bytes_out() const noexcept { return tls_ ? tls_->bytes_out() : bytes_out_; }
  /// Writes all. False: see trouble(); then a part may have left, and every later write() fails.
  Task<bool> write(std::string_view first, std::string_view second = {});
  Task<bool> wait_writable();
  Task<bool> wait_readable();
  /// Waits until there is room to write or something to read, so that an early answer is not
  /// missed.
  Task<bool> wait_any();

  /// Pending reads, or writes, end with Trouble::timeout at that moment; none by default. Each way
  /// has its own, because two coroutines may use the two at once; wait_any() ends at the earlier.
  void read_deadline(MonotonicTime at) noexcept {
    read_side_.deadline = at;
    read_side_.late = false;
  }
  void write_deadline(MonotonicTime at) noexcept {
    write_side_.deadline = at;
    write_side_.late = false;
  }
  void deadline(MonotonicTime at) noexcept {
    read_deadline(at);
    write_deadline(at);
  }
  void no_read_deadline() noexcept { read_deadline(MonotonicTime::max()); }
  void no_write_deadline() noexcept { write_deadline(MonotonicTime::max()); }
  void no_deadline() noexcept { deadline(MonotonicTime::max()); }

  Trouble trouble() const noexcept { return trouble_; }
  /// True when the peer has neither closed nor sent anything yet (RFC 9112 §9.2).
  bool quiet_and_open() noexcept { return glance() == Glance::quiet; }
  /// True when a read would bring bytes, or the end, at once. May be false although it would:
  /// wait_any() then ends at once.
  bool something_here() noexcept { return glance() == Glance::something; }

  /// Tells the peer that no more bytes will come.
  Task<void> shutdown_send();
  /// Ends all pending waits, and every wait from now on, as Trouble::reset.
  void cancel() noexcept;
  bool cancelled() const noexcept { return cancelled_; }
  /// Reads give 0 until allow_reads(); no byte is lost, and trouble() stays none.
  void interrupt_reads() noexcept;
  void allow_reads() noexcept { interrupted_ = false; }
  Socket& socket() noexcept { return *socket_; }
  int descriptor() noexcept;

 private:
  static constexpr std::size_t buffer_bytes = 32UL * 1024;

  enum class Way : std::uint8_t { reading, writing };
  enum class Glance : std::uint8_t { quiet, unsure, something };
  struct Side {
    MonotonicTime deadline = MonotonicTime::max();
    bool late = false;
  };

  void tick(MonotonicTime now) override;
  void make_room() noexcept;
  Task<std::size_t> read_sealed();
  std::size_t write_sealed(std::string_view first, std::string_view second) noexcept;
  Task<bool> wait_for(TlsSession::Wants wants);
  Task<bool> wait(Way way, const Side& side);
  Glance glance() noexcept;
  void end_waits() noexcept;
  bool meant_for_other(const boost::system::error_code& error, bool late) const noexcept;
  void note(const boost::system::error_code& error, bool late) noexcept;

  std::unique_ptr<Socket> socket_;
  std::unique_ptr<char[]> buffer_;
  std::size_t pin_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  Side read_side_;
  Side write_side_;
  std::uint64_t bytes_out_ = 0;
  std::unique_ptr<TlsSession> tls_;
  std::string joined_;  ///< The next TLS record, where it comes from two places.
  bool cancelled_ = false;
  bool interrupted_ = false;
  bool broken_ = false;  ///< The kernel or TLS accepts no more bytes.
  bool cut_ = false;     ///< A write() broke off.
  Trouble trouble_ = Trouble::none;
};

}  // namespace idem::http
