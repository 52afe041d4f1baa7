#include "support/socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "support/process.hpp"

namespace idem::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

Socket::Socket(int fd) : fd_(fd) {
  if (fd_ < 0) return;
  const timeval limit{.tv_sec = patience.count(), .tv_usec = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Socket::Socket(Socket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), tls_(std::move(other.tls_)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  close();
  fd_ = std::exchange(other.fd_, -1);
  tls_ = std::move(other.tls_);
  return *this;
}

Socket Socket::connect_to(std::string_view address, std::string_view from) {
  return connect_from(address, from, 0);
}

Socket Socket::connect_with_small_window(std::string_view address, std::string_view from) {
  return connect_from(address, from, 4096);
}

Socket Socket::connect_from(std::string_view address, std::string_view from, int window) {
  const auto colon = address.rfind(':');
  if (colon == address.npos) return {};
  const std::string host(address.substr(0, colon));
  const int port = std::atoi(std::string(address.substr(colon + 1)).c_str());
  auto target = loopback(static_cast<std::uint16_t>(port));
  if (::inet_pton(AF_INET, host.c_str(), &target.sin_addr) != 1) return {};
  // Close-on-exec: a program started meanwhile must not keep this connection alive.
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (window > 0) ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
  auto source = loopback(0);
  const bool bound =
      from.empty() || (::inet_pton(AF_INET, std::string(from).c_str(), &source.sin_addr) == 1 &&
                       ::bind(fd, reinterpret_cast<const sockaddr*>(&source), sizeof source) == 0);
  if (!bound || ::connect(fd, reinterpret_cast<const sockaddr*>(&target), sizeof target) != 0) {
    ::close(fd);
    return {};
  }
  return Socket(fd);
}

bool Socket::secure_as_client(const TlsSide& side) {
  tls_ = open() ? TlsLayer::connect(fd_, side) : nullptr;
  return tls_ != nullptr;
}

bool Socket::secure_as_server(ssl_ctx_st* server) {
  tls_ = open() ? TlsLayer::accept(fd_, server) : nullptr;
  return tls_ != nullptr;
}

bool Socket::send_all(std::string_view bytes) {
  if (tls_) return tls_->send_all(bytes);
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

Socket::Received Socket::receive(std::string& into) {
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t count =
        tls_ ? tls_->receive(buffer, sizeof buffer) : ::recv(fd_, buffer, sizeof buffer, 0);
    if (count > 0) {
      into.append(buffer, static_cast<std::size_t>(count));
      return Received::bytes;
    }
    if (count == 0) return Received::end;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK ? Received::timeout : Received::reset;
  }
}

bool Socket::readable_within(int milliseconds) const {
  pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, milliseconds) > 0;
}

void Socket::half_close() {
  if (tls_) tls_->say_end();
  ::shutdown(fd_, SHUT_WR);
}

bool Socket::hung_up() const {
  pollfd entry{.fd = fd_, .events = 0, .revents = 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

void Socket::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

void Socket::close() {
  tls_.reset();
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

int listen_anywhere() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto address = loopback(0);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd, 1024) != 0) {
    ::close(fd);
    return -1;
  }
  return fd;
}

std::string local_address(int fd) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

std::string unused_address() {
  const int fd = listen_anywhere();
  auto address = local_address(fd);
  ::close(fd);
  return address;
}

}  // namespace idem::test
