#include "cli/process/passed_sockets.hpp"

#include "http/server.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cstdlib>

namespace idem::cli {
namespace {

struct Address {
  std::string host;
  std::string port;
};

/// Where it listens by TCP; an empty host: nowhere.
Address where_it_listens(int descriptor) {
  if (sd_is_socket(descriptor, AF_UNSPEC, SOCK_STREAM, 1) <= 0) return {};
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  auto* const generic = reinterpret_cast<sockaddr*>(&name);
  if (::getsockname(descriptor, generic, &size) != 0) return {};
  if (name.ss_family != AF_INET && name.ss_family != AF_INET6) return {};
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  constexpr int numeric = NI_NUMERICHOST | NI_NUMERICSERV;
  if (::getnameinfo(generic, size, host, sizeof host, port, sizeof port, numeric) != 0) return {};
  return {host, port};
}

bool is_numeric(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace

PassedSockets::PassedSockets() {
  char** names = nullptr;
  const int count = sd_listen_fds_with_names(1, &names);
  for (int i = 0; i < count; ++i) {
    const int descriptor = SD_LISTEN_FDS_START + i;
    const Address at = where_it_listens(descriptor);
    sockets_.push_back({descriptor, names[i], at.host, at.port});
    std::free(names[i]);
  }
  std::free(names);
}

PassedSockets::~PassedSockets() { close_rest(); }

int PassedSockets::take(const std::string& address, std::string_view role) {
  const auto wanted = http::parse_host_port(address);
  if (!wanted) return http::Server::no_socket;
  const bool is_named_host = !is_numeric(wanted->host);
  for (auto one = sockets_.begin(); one != sockets_.end(); ++one) {
    const bool has_role = one->name == role;
    const bool is_host = one->host == wanted->host || (is_named_host && has_role);
    const bool is_port = one->port == wanted->port || (wanted->port == "0" && has_role);
    if (one->host.empty() || !is_host || !is_port) continue;
    const int descriptor = one->descriptor;
    sockets_.erase(one);
    return descriptor;
  }
  return http::Server::no_socket;
}

std::vector<std::string> PassedSockets::close_rest() {
  std::vector<std::string> addresses;
  for (const Socket& one : sockets_) {
    addresses.push_back(one.host.empty() ? one.name : one.host + ":" + one.port);
    ::close(one.descriptor);
  }
  sockets_.clear();
  return addresses;
}

}  // namespace idem::cli
