#include "http/wire.hpp"

#include "loop/asio.hpp"

#include <idem/assert.hpp>

#include <sys/socket.h>
#include <sys/uio.h>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

namespace idem::http {

using boost::system::error_code;

namespace {

constexpr std::size_t tls_record_bytes = 16UL * 1024;

struct Transfer {
  error_code error;
  std::size_t bytes = 0;
};

}  // namespace

Wire::Wire(Loop& loop, Socket socket)
    : Timed(loop),
      socket_(std::make_unique<Socket>(std::move(socket))),
      buffer_(new char[buffer_bytes]) {
  error_code ignored;
  socket_->set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_->non_blocking(true, ignored);
}

Wire::~Wire() = default;

int Wire::descriptor() noexcept { return socket_->native_handle(); }

void Wire::unpin() noexcept {
  if (begin_ != end_ && begin_ != 0)
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  pin_ = 0;
}

// A socket can only end all of its waits at once. A wait that was not to end goes on.
bool Wire::meant_for_other(const error_code& error, bool late) const noexcept {
  return error == asio::error::operation_aborted && !late && !cancelled_;
}

void Wire::note(const error_code& error, bool late) noexcept {
  if (late) {
    trouble_ = Trouble::timeout;
  } else if (error == asio::error::eof) {
    trouble_ = Trouble::eof;
  } else {
    trouble_ = Trouble::reset;
  }
}

Task<bool> Wire::secure(std::unique_ptr<TlsSession> session) {
  tls_ = std::move(session);
  for (;;) {
    const auto wants = tls_->handshake();
    if (wants == TlsSession::Wants::nothing) co_return true;
    const bool go_on = co_await wait_for(wants);
    if (!go_on) co_return false;
  }
}

// For a read or the handshake; the little that these write counts as reading.
Task<bool> Wire::wait_for(TlsSession::Wants wants) {
  switch (wants) {
    case TlsSession::Wants::nothing:
      co_return true;
    case TlsSession::Wants::readable: {
      const bool readable = co_await wait(Way::reading, read_side_);
      co_return readable;
    }
    case TlsSession::Wants::writable: {
      const bool writable = co_await wait(Way::writing, read_side_);
      co_return writable;
    }
    case TlsSession::Wants::ended:
      trouble_ = Trouble::eof;
      co_return false;
    case TlsSession::Wants::failed:
      trouble_ = Trouble::reset;
      co_return false;
  }
  co_return false;
}

void Wire::make_room() noexcept {
  if (begin_ == end_) begin_ = end_ = pin_;
  if (end_ == buffer_bytes) {
    std::memmove(buffer_.get() + pin_, buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_ - pin_;
    begin_ = pin_;
  }
  IDEM_ASSERT(end_ < buffer_bytes);
}

Task<std::size_t> Wire::read_sealed() {
  while (!interrupted_) {
    const auto moved = tls_->read(buffer_.get() + end_, buffer_bytes - end_);
    end_ += moved.bytes;
    if (moved.bytes > 0) co_return moved.bytes;
    const bool go_on = co_await wait_for(moved.wants);
    if (!go_on) co_return 0;
  }
  co_return 0;
}

Task<std::size_t> Wire::read_some() {
  make_room();
  if (tls_) {
    const std::size_t read = co_await read_sealed();
    co_return read;
  }
  while (!interrupted_ && !cancelled_) {
    auto room = asio::buffer(buffer_.get() + end_, buffer_bytes - end_);
    const auto start = [&](Resumption<Transfer> done) {
      socket_->async_read_some(room, std::move(done));
    };
    auto reading = suspend<Transfer>(start);
    const auto [error, got] = co_await reading;
    if (meant_for_other(error, read_side_.late)) continue;
    if (error) {
      note(error, read_side_.late);
      co_return 0;
    }
    end_ += got;
    co_return got;
  }
  if (cancelled_) trouble_ = Trouble::reset;
  co_return 0;
}

// Small parts are joined, so that a head and its body are one record and one system call. After a
// record that the kernel accepted in part, the same bytes come again and give the same record.
std::size_t Wire::write_sealed(std::string_view first, std::string_view second) noexcept {
  if (first.empty()) std::swap(first, second);
  if (!second.empty() && first.size() < tls_record_bytes) {
    joined_ = first;
    joined_ += second.substr(0, tls_record_bytes - first.size());
    first = joined_;
  }
  const auto moved = tls_->write(first);
  if (moved.wants == TlsSession::Wants::ended || moved.wants == TlsSession::Wants::failed) {
    trouble_ = Trouble::reset;
    broken_ = true;
  }
  return moved.bytes;
}

std::size_t Wire::write_now(std::string_view first, std::string_view second) noexcept {
  if (tls_) return write_sealed(first, second);
  std::array<iovec, 2> parts{{{const_cast<char*>(first.data()), first.size()},
                              {const_cast<char*>(second.data()), second.size()}}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = second.empty() ? 1 : 2;
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(descriptor(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) {
    bytes_out_ += static_cast<std::uint64_t>(sent);
    return static_cast<std::size_t>(sent);
  }
  if (errno != EAGAIN && errno != EWOULDBLOCK) {
    trouble_ = Trouble::reset;
    broken_ = true;
  }
  return 0;
}

Task<bool> Wire::write(std::string_view first, std::string_view second) {
  if (cut_) co_return false;
  while (!first.empty() || !second.empty()) {
    const std::size_t sent = write_now(first, second);
    if (sent == 0) {
      bool ready = false;
      if (!broken_) ready = co_await wait_writable();
      if (!ready) {
        cut_ = true;
        co_return false;
      }
    }
    const std::size_t of_first = std::min(sent, first.size());
    first.remove_prefix(of_first);
    second.remove_prefix(sent - of_first);
    if (first.empty()) std::swap(first, second);
  }
  co_return true;
}

Task<bool> Wire::wait_writable() {
  const bool writable = co_await wait(Way::writing, write_side_);
  co_return writable;
}

Task<bool> Wire::wait_readable() {
  const bool readable = co_await wait(Way::reading, read_side_);
  co_return readable;
}

Task<bool> Wire::wait(Way way, const Side& side) {
  const auto for_what = way == Way::reading ? Socket::wait_read : Socket::wait_write;
  while (!cancelled_) {
    const auto start = [&](Resumption<error_code> done) {
      socket_->async_wait(for_what, std::move(done));
    };
    auto waiting = suspend<error_code>(start);
    const error_code error = co_await waiting;
    if (meant_for_other(error, side.late)) {
      if (interrupted_ && &side == &read_side_) co_return false;
      continue;
    }
    if (error) note(error, side.late);
    co_return !error;
  }
  trouble_ = Trouble::reset;
  co_return false;
}

Wire::Glance Wire::glance() noexcept {
  if (begin_ != end_ || trouble_ != Trouble::none) return Glance::something;
  if (tls_) {
    const bool quiet = tls_->peek() == TlsSession::Wants::readable;
    if (!quiet) return Glance::something;
    return tls_->held_back() ? Glance::unsure : Glance::quiet;
  }
  char byte = 0;
  const ssize_t got = ::recv(descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  const bool empty = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  return empty ? Glance::quiet : Glance::something;
}

Task<void> Wire::shutdown_send() {
  if (tls_ && !cut_) {
    auto wants = tls_->send_close_notify();
    while (wants == TlsSession::Wants::writable) {
      const bool writable = co_await wait_writable();
      if (!writable) break;
      wants = tls_->send_close_notify();
    }
  }
  error_code ignored;
  socket_->shutdown(Socket::shutdown_send, ignored);
}

void Wire::end_waits() noexcept {
  error_code ignored;
  socket_->cancel(ignored);
}

void Wire::cancel() noexcept {
  cancelled_ = true;
  end_waits();
}

void Wire::interrupt_reads() noexcept {
  interrupted_ = true;
  end_waits();
}

void Wire::tick(MonotonicTime now) {
  // Again at each tick, until the coroutine that waits has moved its deadline: it may have started
  // its next wait after an earlier end.
  read_side_.late = now >= read_side_.deadline;
  write_side_.late = now >= write_side_.deadline;
  if (read_side_.late || write_side_.late) end_waits();
}

Task<bool> Wire::wait_any() {
  while (!cancelled_) {
    const auto start = [this](Resumption<error_code> first) {
      // Both waits share this; the first to end resumes the coroutine, the other is cancelled and
      // finds no coroutine.
      using Shared = std::optional<Resumption<error_code>>;
      const auto shared = std::make_shared<Shared>(std::move(first));
      const auto ended = [this, shared](const error_code& error) {
        if (!*shared) return;
        auto resumed = std::move(**shared);
        shared->reset();
        end_waits();
        resumed(error);
      };
      socket_->async_wait(Socket::wait_write, ended);
      socket_->async_wait(Socket::wait_read, ended);
    };
    auto waiting = suspend<error_code>(start);
    const error_code error = co_await waiting;
    const bool late = read_side_.late || write_side_.late;
    if (meant_for_other(error, late)) continue;
    if (error) note(error, late);
    co_return !error;
  }
  trouble_ = Trouble::reset;
  co_return false;
}

}  // namespace idem::http
