#pragma once

#include <idem/record.hpp>
#include <idem/worker_limits.hpp>

#include <atomic>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// One HTTP request to another party, and what is known if no answer came.
namespace idem {

/// A request and its rules.
struct FetchRequest {
  std::string method = "GET";
  std::string url{};
  std::vector<Field> headers{};
  /// Sent with POST, PUT and PATCH always, and with another method if it is not empty.
  std::string body{};
  Millis timeout = limits::fetch_timeout_default;  ///< For all of it.
  /// Of the answer's body.
  std::size_t max_bytes = limits::fetch_bytes_default;
  /// "HOST" (the scheme's own port) or "HOST:PORT", as fetch_host_of() returns it. Other hosts are
  /// refused; an empty list allows none.
  std::vector<std::string> allowed_hosts{};
  /// PEM file of the authorities that a certificate is checked against; empty: the system's.
  std::string ca_file{};
  /// PEM files of a certificate to present, and its key; empty: none.
  std::string certificate_file{};
  std::string key_file{};
  /// Ends the request within about a second once it is true, as if its time were over. Null: never.
  const std::atomic<bool>* is_abandoned = nullptr;
};

/// A final answer, whatever its status.
struct FetchAnswer {
  int status = 0;
  std::vector<Field> headers{};  ///< Without those of interim answers and trailers.
  std::string body{};

  /// The value of the first field of this name; empty if there is none.
  std::string_view header(std::string_view name) const noexcept;
};

/// Why there is no answer.
struct FetchError {
  enum class Kind : std::uint8_t {
    refused_by_rule,  ///< The URL, a header or the host is not allowed. Nothing was sent.
    connect,          ///< No such name, or no connection.
    tls,              ///< No common version, or the certificate is not good.
    timeout,
    too_large,  ///< The body is longer than `max_bytes`, or the head than its limit.
    protocol,   ///< Closed early, cut, or no HTTP.
  };
  Kind kind = Kind::protocol;
  /// A byte of the request may have left. False proves that the other party has received nothing.
  bool sent = false;
  std::string why{};
  /// The head that came before the error; without a status, no whole head came. It has no body.
  FetchAnswer head{};
};

/// Sends requests, one after the other. Sends each once, on a new connection: a client that reuses
/// connections sends again by itself if the old one was closed, and the number of sendings is then
/// unknown. http and https only; follows no redirect (a 3xx is the answer), uses no proxy, decodes
/// nothing. Blocks; one thread at a time.
class Fetcher {
 public:
  Fetcher();
  ~Fetcher();
  Fetcher(Fetcher&&) noexcept;
  Fetcher& operator=(Fetcher&&) noexcept;

  /// Checks the host with the same parse of the URL that makes the connection.
  std::expected<FetchAnswer, FetchError> fetch(const FetchRequest& request);

 private:
  class Handle;
  std::unique_ptr<Handle> handle_;
};

/// "host:port" of a URL, in lower case and with the scheme's port if it names none. The error is a
/// sentence: it is no http or https URL, or it contains a user or password.
std::expected<std::string, std::string> fetch_host_of(const std::string& url);

}  // namespace idem
