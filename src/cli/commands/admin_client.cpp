#include "cli/commands/admin_client.hpp"

#include "cli/commands/tables.hpp"
#include "http/chunked.hpp"
#include "http/head.hpp"
#include "http/upstream_pool.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

namespace idem::cli {
namespace {

constexpr int step_seconds_max = 30;
// The largest stored answer in base64, with its record.
constexpr std::size_t answer_bytes_max = limits::request_body_bytes_cap * 2;

using Failed = std::unexpected<AdminFailure>;

Failed failed_by(std::string why) { return Failed(AdminFailure{false, std::move(why)}); }

class BlockingConnection {
 public:
  BlockingConnection() = default;
  ~BlockingConnection() {
    if (fd_ >= 0) ::close(fd_);
  }
  BlockingConnection(const BlockingConnection&) = delete;
  BlockingConnection& operator=(const BlockingConnection&) = delete;

  /// Empty: connected; otherwise the error.
  std::string connect(const http::HostPort& to) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int error = ::getaddrinfo(to.host.c_str(), to.port.c_str(), &wanted, &found);
    if (error != 0) return ::gai_strerror(error);
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
    std::string why = "no address";
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      fd_ = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd_ < 0) return std::strerror(errno);
      const timeval step{step_seconds_max, 0};
      ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &step,
                   sizeof step);  // connect() uses it too.
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &step, sizeof step);
      if (::connect(fd_, one->ai_addr, one->ai_addrlen) == 0) return {};
      why = std::strerror(errno);
      ::close(fd_);
      fd_ = -1;
    }
    return why;
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// Appends the next bytes. False: the end, an error or a timeout.
  bool receive(std::string& into) {
    char buffer[16384];
    for (;;) {
      const auto got = ::recv(fd_, buffer, sizeof buffer, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      into.append(buffer, static_cast<std::size_t>(got));
      return true;
    }
  }

 private:
  int fd_ = -1;
};

/// Reads the body with the framing of its head; none: it is cut off or malformed.
std::optional<std::string> read_body(BlockingConnection& connection, std::string received,
                                     http::Framing framing, std::uint64_t length) {
  if (framing == http::Framing::none) return std::string();
  http::ChunkDecoder chunks;
  std::string body;
  for (;;) {
    if (framing == http::Framing::chunked) {
      std::string_view rest = received;
      for (;;) {
        const auto step = chunks.feed(rest);
        if (!step) return std::nullopt;
        body += step->data;
        rest.remove_prefix(step->consumed);
        if (step->finished) return body;
        if (step->consumed == 0 || rest.empty()) break;
      }
      received.erase(0, received.size() - rest.size());
    } else {
      body += received;
      received.clear();
      const bool counted = framing == http::Framing::content_length;
      if (counted && body.size() == length) return body;
      if (counted && body.size() > length) return std::nullopt;
    }
    if (body.size() > answer_bytes_max) return std::nullopt;
    if (!connection.receive(received)) {
      if (framing != http::Framing::until_close) return std::nullopt;
      return body;
    }
  }
}

std::expected<AdminAnswer, AdminFailure> read_answer(BlockingConnection& connection,
                                                     std::string_view method) {
  std::string received;
  std::size_t scanned = 0;
  http::ResponseHead head;
  for (;;) {
    const auto parsed = http::parse_response_head(received, scanned, method, head);
    if (!parsed) return failed_by("the server there is no admin API: its answer is not HTTP");
    if (*parsed && head.status >= 200) {
      const int status = head.status;
      auto body =
          read_body(connection, received.substr(**parsed), head.framing, head.content_length);
      if (!body) return failed_by("the answer was cut off");
      return AdminAnswer{status, std::move(*body)};
    }
    if (*parsed) {
      received.erase(0, **parsed);
      scanned = 0;
    } else if (!connection.receive(received)) {
      return failed_by("no answer came");
    }
  }
}

std::string request_of(const AdminAccess& access, const http::UpstreamAddress& address,
                       const std::string& target, const std::string* body) {
  std::string text = body != nullptr ? "POST " : "GET ";
  text += target + " HTTP/1.1\r\nHost: " + address.authority + "\r\nConnection: close\r\n";
  if (body == nullptr) return text + "\r\n";
  text += "Idem-Operator: " + access.operator_name + "\r\n";
  text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body->size());
  return text + "\r\n\r\n" + *body;
}

}  // namespace

std::expected<AdminAnswer, AdminFailure> ask_admin(const AdminAccess& access,
                                                   const std::string& target,
                                                   const std::string* body) {
  const auto address = http::parse_upstream_url(access.url);
  if (!address) {
    return Failed(AdminFailure{true, "\"" + printable(access.url) +
                                         "\" is no URL of an admin listener; write one such as "
                                         "http://127.0.0.1:9901"});
  }
  if (address->tls) return Failed(AdminFailure{true, "the admin API speaks http:// only"});
  BlockingConnection connection;
  if (const auto why = connection.connect(address->endpoint); !why.empty()) return failed_by(why);
  // Even if sending fails: a refusal may come before the whole request is sent.
  connection.send(request_of(access, *address, target, body));
  return read_answer(connection, body != nullptr ? "POST" : "GET");
}

std::string percent_encoded(std::string_view text) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '_' || c == '.';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

}  // namespace idem::cli
