#pragma once

#include "check/wire/message.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace idem::check {

/// A request as an API reads it.
struct Arrived {
  std::string head;
  std::string body;
  bool is_whole = true;  ///< False: the client left before its end.

  std::string field(const std::string& name) const {
    const auto at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return {};
    const auto from = at + name.size() + 4;
    return head.substr(from, head.find("\r\n", from) - from);
  }
};

/// An HTTP server in this process, on a free port. The handler returns the bytes of the answer;
/// empty: the connection is closed without one. Calls of the handler do not overlap.
class FakeApi {
 public:
  using Handler = std::function<std::string(FakeApi& api, const Arrived& request)>;

  explicit FakeApi(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    const bool listens = ::bind(listener_, any, size) == 0 && ::listen(listener_, 256) == 0 &&
                         ::getsockname(listener_, any, &size) == 0;
    if (!listens) std::abort();
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~FakeApi() {
    stop_listening();
    acceptor_.join();
    for (auto& one : served_) one.join();
  }
  FakeApi(const FakeApi&) = delete;
  FakeApi& operator=(const FakeApi&) = delete;

  std::string port() const { return std::to_string(port_); }
  /// From now on connections are refused.
  void stop_listening() { ::shutdown(listener_.load(), SHUT_RDWR); }
  std::vector<Arrived> arrived() {
    const std::lock_guard lock(mutex_);
    return arrived_;
  }

  static std::string answer(int status, const std::string& body) {
    return "HTTP/1.1 " + std::to_string(status) +
           " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

 private:
  void accept_all() {
    for (int client = 0; (client = ::accept(listener_, nullptr, nullptr)) >= 0;) {
      served_.emplace_back([this, client] { serve(client); });
    }
    ::close(listener_);
  }

  void serve(int client) {
    std::string bytes;
    char buffer[16 * 1024];
    Arrived request{.head = {}, .body = {}, .is_whole = false};
    for (;;) {
      const auto end = bytes.find("\r\n\r\n");
      if (end != std::string::npos) {
        request.head = bytes.substr(0, end + 2);
        request.body = bytes.substr(end + 4);
        const std::string length = request.field("Content-Length");
        request.is_whole = request.body.size() >= (length.empty() ? 0 : std::stoul(length));
        if (request.is_whole) break;
      }
      const auto got = ::recv(client, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      bytes.append(buffer, static_cast<std::size_t>(got));
    }
    if (!request.head.empty()) {
      const std::lock_guard lock(mutex_);
      arrived_.push_back(request);
      const std::string text = handler_(*this, request);
      ::send(client, text.data(), text.size(), MSG_NOSIGNAL);
    }
    ::close(client);
  }

  Handler handler_;
  std::atomic<int> listener_;
  int port_ = 0;
  std::thread acceptor_;
  std::vector<std::thread> served_;
  std::mutex mutex_;
  std::vector<Arrived> arrived_;
};

}  // namespace idem::check
