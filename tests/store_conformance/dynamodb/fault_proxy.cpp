#include "store_conformance/dynamodb/fault_proxy.hpp"

#include "core/bytes/ascii.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace idem::test {
namespace {

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

/// A whole message with a Content-Length; none: the connection ended before.
template <class Side>
std::optional<std::string> read_message(const Side& side, std::string& rest) {
  char buffer[16 * 1024];
  for (;;) {
    const auto head_end = rest.find("\r\n\r\n");
    if (head_end != rest.npos) {
      const std::string head = lower_case(rest.substr(0, head_end));
      const auto field = head.find("content-length:");
      const std::size_t body =
          field == head.npos ? 0 : std::strtoull(head.c_str() + field + 15, nullptr, 10);
      const std::size_t size = head_end + 4 + body;
      if (rest.size() >= size) {
        std::string message = rest.substr(0, size);
        rest.erase(0, size);
        return message;
      }
    }
    const auto count = side.receive(buffer, sizeof buffer);
    if (count <= 0) return std::nullopt;
    rest.append(buffer, static_cast<std::size_t>(count));
  }
}

bool send_to(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::string action_of(const std::string& request) {
  constexpr std::string_view before = "DynamoDB_20120810.";
  const auto at = request.find(before);
  if (at == request.npos) return {};
  const auto end = request.find('\r', at);
  return request.substr(at + before.size(), end - at - before.size());
}

std::string error_answer(int status, const std::string& type) {
  const std::string body = R"({"__type":"com.amazonaws.dynamodb.v20120810#)" + type + "\"}";
  return "HTTP/1.1 " + std::to_string(status) +
         " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

long FaultProxy::Client::receive(char* to, std::size_t room) const {
  return tls ? tls->receive(to, room) : recv(socket, to, room, 0);
}

bool FaultProxy::Client::send_all(std::string_view bytes) const {
  return tls ? tls->send_all(bytes) : send_to(socket, bytes);
}

FaultProxy::FaultProxy(const std::string& target, std::shared_ptr<ssl_ctx_st> tls)
    : tls_(std::move(tls)) {
  target_port_ = std::atoi(target.c_str() + target.rfind(':') + 1);
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::abort();
  if (listen(listener_, 64) != 0) std::abort();
  socklen_t size = sizeof address;
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

FaultProxy::~FaultProxy() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    for (const int client : clients_) shutdown(client, SHUT_RDWR);
  }
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& server : servers_) server.join();
  for (const int client : clients_) close(client);
  close(listener_);
}

std::string FaultProxy::endpoint() const {
  return (tls_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_);
}

void FaultProxy::plan(const std::string& action, Mishap mishap, int times, const std::string& part,
                      std::function<void()> meanwhile) {
  const std::lock_guard lock(mutex_);
  plans_.push_back({action, part, mishap, times, std::move(meanwhile)});
}

int FaultProxy::met() {
  const std::lock_guard lock(mutex_);
  return met_;
}

int FaultProxy::came(const std::string& action) {
  const std::lock_guard lock(mutex_);
  return came_[action];
}

int FaultProxy::turned_away() {
  const std::lock_guard lock(mutex_);
  return turned_away_;
}

void FaultProxy::come_back() {
  const std::lock_guard lock(mutex_);
  is_away_ = false;
}

std::vector<int> FaultProxy::release() {
  std::vector<std::string> held;
  {
    const std::lock_guard lock(mutex_);
    held.swap(held_);
  }
  std::vector<int> statuses;
  for (const std::string& request : held) {
    statuses.push_back(std::atoi(pass_on(request).c_str() + 9));
  }
  return statuses;
}

void FaultProxy::accept_all() {
  for (;;) {
    const int client = accept(listener_, nullptr, nullptr);
    if (client < 0) return;
    const std::lock_guard lock(mutex_);
    if (is_stopping_) {
      close(client);
      return;
    }
    if (is_away_) {
      ++turned_away_;
      close(client);
      continue;
    }
    clients_.push_back(client);
    servers_.emplace_back([this, client] { serve(client); });
  }
}

void FaultProxy::serve(int client) {
  const Client side{client, tls_ ? TlsLayer::accept(client, tls_.get()) : nullptr};
  std::string rest;
  while (!tls_ || side.tls) {
    const auto request = read_message(side, rest);
    if (!request || !answer(side, *request)) break;
  }
  shutdown(client, SHUT_RDWR);
}

std::optional<FaultProxy::Plan> FaultProxy::meet(const std::string& request) {
  const std::lock_guard lock(mutex_);
  const std::string action = action_of(request);
  ++came_[action];
  const auto found = std::ranges::find_if(plans_, [&](const Plan& plan) {
    return plan.action == action && request.find(plan.part) != request.npos;
  });
  if (found == plans_.end()) return std::nullopt;
  Plan met = *found;
  ++met_;
  if (--found->left == 0) plans_.erase(found);
  if (met.mishap == Mishap::hold) held_.push_back(request);
  return met;
}

/// False: the connection is cut.
bool FaultProxy::answer(const Client& client, const std::string& request) {
  const auto met = meet(request);
  if (!met) return client.send_all(pass_on(request));
  const auto pass = [&] {
    std::string whole = pass_on(request);
    if (met->meanwhile) met->meanwhile();
    return whole;
  };
  switch (met->mishap) {
    case Mishap::throttle:
      return client.send_all(error_answer(400, "ThrottlingException"));
    case Mishap::fail:
      return client.send_all(error_answer(500, "InternalServerError"));
    case Mishap::fail_after:
      pass();
      return client.send_all(error_answer(500, "InternalServerError"));
    case Mishap::cut_before:
    case Mishap::hold:
      return false;
    case Mishap::cut_after:
      pass();
      return false;
    case Mishap::leave: {
      pass();
      const std::lock_guard lock(mutex_);
      is_away_ = true;
      for (const int one : clients_) shutdown(one, SHUT_RDWR);
      return false;
    }
    case Mishap::twice: {
      const std::string first = pass();
      pass_on(request);
      return client.send_all(first);
    }
    case Mishap::damage: {
      std::string whole = pass();
      const auto at = whole.rfind("\"B\":\"");
      if (at != whole.npos) whole[at + 5] = whole[at + 5] == 'A' ? 'B' : 'A';
      return client.send_all(whole);
    }
  }
  return false;
}

std::string FaultProxy::pass_on(const std::string& request) const {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(target_port_);
  std::string rest;
  std::optional<std::string> whole;
  const bool is_there =
      connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (is_there && send_to(server, request)) whole = read_message(Client{server}, rest);
  close(server);
  return whole.value_or("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n");
}

}  // namespace idem::test
