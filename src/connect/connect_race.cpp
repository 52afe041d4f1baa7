#include "connect/connect_race.hpp"

#include "connect/connect_limits.hpp"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

namespace idem {
namespace {

/// 0: connected. EINPROGRESS: not yet. Otherwise why it failed.
int outcome_of(int socket) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  if (error != 0) return error;
  sockaddr_storage peer{};
  socklen_t bytes = sizeof peer;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &bytes) == 0) return 0;
  return errno == ENOTCONN ? EINPROGRESS : errno;
}

bool watch(int events, int descriptor, std::uint32_t what) noexcept {
  epoll_event event{};
  event.events = what;
  event.data.fd = descriptor;
  return ::epoll_ctl(events, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

}  // namespace

ConnectRace::ConnectRace(Peers peers)
    : peers_(std::move(peers)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (!events_ || !timer_ || !watch(events_.get(), timer_.get(), EPOLLIN)) {
    error_ = errno;
    next_ = peers_.size();
  }
}

ConnectRace::State ConnectRace::advance(MonotonicTime now) {
  if (look_at_tries(now)) return State::connected;
  while (next_ < peers_.size() && (tries_.empty() || now >= next_at_)) start_next(now);
  if (tries_.empty()) return State::failed;
  arm_timer(now);
  return State::connecting;
}

bool ConnectRace::look_at_tries(MonotonicTime now) {
  for (std::size_t i = 0; i < tries_.size();) {
    const int outcome = outcome_of(tries_[i].socket.get());
    if (outcome == EINPROGRESS) {
      ++i;
      continue;
    }
    if (outcome == 0) {
      winner_ = tries_[i].peer;
      won_ = std::move(tries_[i].socket);
      ::epoll_ctl(events_.get(), EPOLL_CTL_DEL, won_.get(), nullptr);
      tries_.clear();
      return true;
    }
    error_ = outcome;
    // An earlier one than the latest: the latest has its time all the same.
    if (i + 1 == tries_.size()) next_at_ = now;
    tries_.erase(tries_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return false;
}

void ConnectRace::start_next(MonotonicTime now) {
  const std::size_t at = next_++;
  const Peer& peer = peers_[at];
  next_at_ = now;  // Unless this one is under way.
  OwnedDescriptor socket(::socket(peer.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const bool is_under_way =
      socket && (::connect(socket.get(), peer.raw(), peer.bytes) == 0 || errno == EINPROGRESS) &&
      watch(events_.get(), socket.get(), EPOLLOUT);
  if (!is_under_way) {
    error_ = errno;
    return;
  }
  next_at_ = now + limits::connect_attempt_delay;
  tries_.push_back({at, std::move(socket)});
}

void ConnectRace::arm_timer(MonotonicTime now) {
  std::uint64_t expirations = 0;
  (void)!::read(timer_.get(), &expirations, sizeof expirations);
  itimerspec at{};
  if (next_ < peers_.size()) {
    // One of 0 would never end.
    const Millis left = std::max(next_at_ - now, Millis(1));
    at.it_value.tv_sec = left.count() / 1'000;
    at.it_value.tv_nsec = left.count() % 1'000 * 1'000'000;
  }
  ::timerfd_settime(timer_.get(), 0, &at, nullptr);
}

}  // namespace idem
