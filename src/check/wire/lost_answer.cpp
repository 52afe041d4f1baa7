#include "check/wire/lost_answer.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <utility>

namespace idem::check {
namespace {

using Millis = std::chrono::milliseconds;

/// Reads the one request of a client; empty: it did not send a whole one.
std::string read_request(int client, Millis timeout) {
  std::string bytes;
  for (;;) {
    const auto head = bytes.find("\r\n\r\n");
    if (head != std::string::npos) {
      std::size_t length = 0;
      const auto at = bytes.find("Content-Length: ");
      if (at != std::string::npos && at < head) {
        std::from_chars(bytes.data() + at + 16, bytes.data() + head, length);
      }
      if (bytes.size() >= head + 4 + length) return bytes;
    }
    pollfd one{client, POLLIN, 0};
    if (::poll(&one, 1, static_cast<int>(timeout.count())) <= 0) return {};
    std::array<char, 16 * 1024> buffer{};
    const auto got = ::recv(client, buffer.data(), buffer.size(), 0);
    if (got <= 0) return {};
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::expected<Answer, std::string> deliver(int listener, const Origin& api, Millis timeout,
                                           bool insecure) {
  pollfd one{listener, POLLIN, 0};
  if (::poll(&one, 1, static_cast<int>(timeout.count())) <= 0) {
    return std::unexpected("no client came to the proxy");
  }
  const int client = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return std::unexpected("no client came to the proxy");
  const auto result = [&]() -> std::expected<Answer, std::string> {
    const std::string request = read_request(client, timeout);
    if (request.empty()) return std::unexpected("the proxy received no complete request");
    auto connection = Connection::open(api, timeout, insecure);
    if (!connection) return std::unexpected(connection.error());
    if (auto sent = connection->send(request, timeout); !sent) {
      return std::unexpected(sent.error());
    }
    std::string seen;
    return connection->read(timeout, seen);
  }();
  ::close(client);
  return result;
}

}  // namespace

LostAnswer::LostAnswer(int listener, Origin here) : listener_(listener), here_(std::move(here)) {}

LostAnswer::LostAnswer(LostAnswer&& other) noexcept
    : listener_(std::exchange(other.listener_, -1)),
      here_(std::move(other.here_)),
      answer_(std::move(other.answer_)) {}

LostAnswer::~LostAnswer() {
  if (answer_.valid()) answer_.wait();
  if (listener_ >= 0) ::close(listener_);
}

std::expected<LostAnswer, std::string> LostAnswer::listen(const Origin& api, Millis timeout,
                                                          bool insecure) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (listener < 0 || ::bind(listener, any, size) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, any, &size) != 0) {
    if (listener >= 0) ::close(listener);
    return std::unexpected("the proxy between client and API cannot listen");
  }
  LostAnswer proxy(
      listener,
      {.is_tls = false, .host = "127.0.0.1", .port = std::to_string(ntohs(address.sin_port))});
  proxy.answer_ = std::async(std::launch::async, &deliver, listener, api, timeout, insecure);
  return proxy;
}

}  // namespace idem::check
