#pragma once

#include "check/wire/message.hpp"

#include <chrono>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

namespace idem::check {

/// Where an API listens.
struct Origin {
  bool is_tls = false;
  std::string host;
  std::string port;

  /// "host:port", without the scheme's own port: for Host.
  std::string authority() const;
  /// "https://host:port"
  std::string text() const;
  /// Resolves to addresses of this machine alone.
  bool is_loopback() const;

  /// Of a URL with http or https; what follows the authority is written to `path`.
  static std::expected<Origin, std::string> parse(std::string_view url,
                                                  std::string* path = nullptr);
};

/// One TCP connection, with TLS if the origin has it, over which a case sends what bytes it likes.
/// One thread at a time.
class Connection {
 public:
  using Millis = std::chrono::milliseconds;

  /// Verifies the server's certificate, unless `insecure`. The error is a sentence part.
  static std::expected<Connection, std::string> open(const Origin& origin, Millis timeout,
                                                     bool insecure);
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;
  ~Connection();  ///< Closes it.

  /// Sends all of it. An error: how the connection ended.
  std::expected<void, std::string> send(std::string_view bytes, Millis timeout);
  /// Reads one whole answer. The error says why there is none; `seen` gets the bytes that came.
  std::expected<Answer, std::string> read(Millis timeout, std::string& seen);
  /// Waits for the first byte of an answer.
  bool wait_for_byte(Millis timeout);
  /// Closes at once, with a reset: the client is gone.
  void reset();

 private:
  struct Handle;
  explicit Connection(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
};

/// The body of a GET; for `effects`. The error is a sentence part.
std::expected<std::string, std::string> fetch(const std::string& url, const Fields& fields,
                                              std::chrono::milliseconds timeout, bool insecure);

}  // namespace idem::check
