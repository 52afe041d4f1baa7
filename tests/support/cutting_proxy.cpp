#include "support/cutting_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

namespace idem::test {
namespace {

void must(bool fine) {
  if (!fine) std::abort();
}

int connect_over_network(const std::string& target) {
  const auto colon = target.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(target.substr(colon + 1))));
  must(::inet_pton(AF_INET, target.substr(0, colon).c_str(), &address.sin_addr) == 1);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

int connect_to(const std::string& path) {
  if (path.find('/') == path.npos) return connect_over_network(path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  must(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.data(), path.size());
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Often enough to end soon, seldom enough to cost nothing.
constexpr int look_ms = 20;

}  // namespace

CuttingProxy::CuttingProxy(std::string target, const std::string& host)
    : target_(std::move(target)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  must(::inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1);
  must(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  must(::listen(listener_, 64) == 0);
  socklen_t size = sizeof address;
  must(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

CuttingProxy::~CuttingProxy() {
  stopping_ = true;
  acceptor_.join();
  for (std::thread& carrier : carriers_) carrier.join();
  ::close(listener_);
}

void CuttingProxy::lose_answer_to(std::string part) {
  const std::lock_guard lock(mutex_);
  part_ = std::move(part);
}

void CuttingProxy::lose_message(std::string part) {
  const std::lock_guard lock(mutex_);
  lost_part_ = std::move(part);
}

void CuttingProxy::cut_before(std::string part) {
  const std::lock_guard lock(mutex_);
  cut_part_ = std::move(part);
}

void CuttingProxy::lose_answers(double chance, unsigned seed) {
  const std::lock_guard lock(mutex_);
  chance_ = chance;
  dice_.seed(seed);
}

bool CuttingProxy::falls() {
  const std::lock_guard lock(mutex_);
  return chance_ > 0 && std::uniform_real_distribution<double>(0, 1)(dice_) < chance_;
}

std::optional<std::size_t> CuttingProxy::cut_of(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  const auto at = cut_part_.empty() ? bytes.npos : bytes.find(cut_part_);
  if (at == bytes.npos) return std::nullopt;
  cut_part_.clear();
  return at;
}

bool CuttingProxy::is_marked(std::string& part, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (part.empty() || bytes.find(part) == bytes.npos) return false;
  part.clear();
  return true;
}

void CuttingProxy::accept_all() {
  while (!stopping_) {
    pollfd waiting{listener_, POLLIN, 0};
    if (::poll(&waiting, 1, look_ms) != 1) continue;
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client >= 0) carriers_.emplace_back([this, client] { carry(client); });
  }
}

void CuttingProxy::wait_for_end(int client) const {
  pollfd end{client, POLLRDHUP, 0};
  while (!stopping_ && ::poll(&end, 1, look_ms) == 0) {
  }
}

void CuttingProxy::carry(int client) {
  const int server = connect_to(target_);
  bool marked = false;
  std::array<char, 65'536> buffer;
  while (server >= 0 && !stopping_) {
    pollfd both[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
    if (::poll(both, 2, look_ms) <= 0) continue;
    if (both[0].revents != 0) {
      const auto got = ::read(client, buffer.data(), buffer.size());
      if (got <= 0) break;
      const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
      if (gate_ && !gate_->may_pass()) {
        wait_for_end(client);
        break;
      }
      marked |= is_marked(part_, bytes);
      if (is_marked(lost_part_, bytes)) {
        ++lost_;
        break;
      }
      if (const auto arrives = cut_of(bytes)) {
        ++lost_;
        send_all(server, bytes.substr(0, *arrives));
        break;
      }
      if (!send_all(server, bytes)) break;
    }
    if (both[1].revents != 0) {
      const auto got = ::read(server, buffer.data(), buffer.size());
      if (got <= 0) break;
      if (marked || falls()) {
        ++lost_;
        break;
      }
      if (!send_all(client, {buffer.data(), static_cast<std::size_t>(got)})) break;
    }
  }
  if (server >= 0) ::close(server);
  ::close(client);
}

}  // namespace idem::test
