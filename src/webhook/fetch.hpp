#pragma once

#include <idem/record.hpp>
#include <idem/worker_limits.hpp>

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// One HTTP request to somebody outside, and what is known when no answer came.
namespace idem {

/// A request, and the rules that it keeps to.
struct FetchRequest {
  std::string method = "GET";
  std::string url{};
  std::vector<Field> headers{};
  /// Sent with POST, PUT and PATCH always, and with another method where it is not empty.
  std::string body{};
  Millis timeout = limits::fetch_timeout_default;  ///< For all of it.
  /// Of the answer's body.
  std::size_t max_bytes = limits::fetch_bytes_default;
  /// "HOST" (the scheme's own port) or "HOST:PORT", as fetch_host_of() tells it. What is not in it
  /// is not asked, and an empty list allows nobody.
  std::vector<std::string> allowed_hosts{};
  /// PEM file of the authorities that a certificate is checked against; empty: the system's.
  std::string ca_file{};
};

/// A final answer, whatever its status.
struct FetchAnswer {
  int status = 0;
  std::vector<Field> headers{};  ///< Without those of interim answers and trailers.
  std::string body{};

  /// The value of the first field of this name; empty where there is none.
  std::string_view header(std::string_view name) const noexcept;
};

/// Why there is none.
struct FetchError {
  /// Where it ended.
  enum class Kind : std::uint8_t {
    refused_by_rule,  ///< The URL, a header or the host is none that is allowed. Nothing was sent.
    connect,          ///< No such name, or nobody listens.
    tls,              ///< No common version, or the certificate is not good.
    timeout,
    too_large,  ///< The answer is longer than `max_bytes`, or its head than is read.
    protocol,   ///< Closed early, cut, or no HTTP.
  };
  Kind kind = Kind::protocol;
  /// Whether any byte of the request may have left: false is a proof that nobody has seen it.
  bool sent = false;
  std::string why{};
  /// What was heard before that; without a status, no head was read whole. Its body is not told.
  FetchAnswer head{};
};

/// Sends requests, one after the other. Each goes out once and on a connection of its own: a client
/// that keeps connections sends again by itself when it meets one that was closed, and then nobody
/// knows how often. http and https only, no redirect is followed (a 3xx is the answer), no proxy is
/// used, nothing is decoded. Blocks; one thread at a time.
class Fetcher {
 public:
  Fetcher();
  ~Fetcher();
  Fetcher(Fetcher&&) noexcept;
  Fetcher& operator=(Fetcher&&) noexcept;

  /// Asks. The host is judged by the same reading of the URL that the connection is made by.
  std::expected<FetchAnswer, FetchError> fetch(const FetchRequest& request);

 private:
  class Handle;
  std::unique_ptr<Handle> handle_;
};

/// "host:port" of a URL, in lower case and with the scheme's port where it names none. The error is
/// a sentence: it is no http or https URL, or it has a user or password in it.
std::expected<std::string, std::string> fetch_host_of(const std::string& url);

}  // namespace idem
