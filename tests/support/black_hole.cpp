#include "support/black_hole.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>

namespace idem::test {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Address address_of(const std::string& host, int port) {
  Address address;
  const auto in_network_order = htons(static_cast<std::uint16_t>(port));
  if (host.find(':') != std::string::npos) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = in_network_order;
    ::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr);
    std::memcpy(&address.storage, &six, address.bytes = sizeof six);
  } else {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = in_network_order;
    ::inet_pton(AF_INET, host.c_str(), &four.sin_addr);
    std::memcpy(&address.storage, &four, address.bytes = sizeof four);
  }
  return address;
}

int port_of(int listener) {
  sockaddr_storage bound{};
  socklen_t bytes = sizeof bound;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &bytes);
  // The port is in the same place in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

}  // namespace

int listen_at(const std::string& host, int port, int backlog) {
  const Address address = address_of(host, port);
  const int listener = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener, address.raw(), address.bytes) == 0 && ::listen(listener, backlog) == 0) {
    return listener;
  }
  ::close(listener);
  return -1;
}

bool run_with_hosts(const std::filesystem::path& hosts, const std::function<void()>& work) {
  bool has_run = false;
  std::thread([&] {
    // Private first, or the whole machine would see the mount.
    has_run = ::unshare(CLONE_NEWNS) == 0 &&
              ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
              ::mount(hosts.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) == 0;
    if (has_run) work();
  }).join();
  return has_run;
}

BlackHole::BlackHole(const std::string& host, int port) : host_(host) {
  listener_ = listen_at(host, port, 0);
  if (listener_ < 0) return;
  port_ = port_of(listener_);
  const Address address = address_of(host, port_);
  // A backlog of 0 has room for one.
  for (int i = 0; i < 3; ++i) {
    const int filler =
        ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)::connect(filler, address.raw(), address.bytes);
    fillers_.push_back(filler);
  }
}

BlackHole::~BlackHole() {
  for (const int filler : fillers_) ::close(filler);
  if (listener_ >= 0) ::close(listener_);
}

}  // namespace idem::test
