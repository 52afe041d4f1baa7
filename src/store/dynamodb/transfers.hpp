#pragma once

#include "loop/loop.hpp"

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Requests by libcurl: to the table's endpoint, signed, and to the places that give credentials.
namespace idem::dynamodb {

/// How libcurl signs a request (Signature Version 4).
struct Signing {
  std::string scope;  ///< "aws:amz:REGION:dynamodb"
  std::string key_id;
  std::string secret;
};

struct HttpRequest {
  std::string method = "POST";
  std::string url{};
  std::vector<std::string> headers{};  ///< "Name: value", without secrets of ours in the name.
  std::string body{};
  Millis patience{};  ///< From the start of ask() to the end of the answer.
  std::optional<Signing> signing{};
  bool is_trusted_system = true;  ///< False: by the ca_file of the transfers.
  std::string addresses{};  ///< Of ask(): HOST:PORT:ADDRESS,ADDRESS; empty: libcurl's to find.
};

struct HttpAnswer {
  int status = 0;
  std::string body{};
  std::optional<std::uint32_t> crc32{};  ///< x-amz-crc32
  std::optional<StoreTime> date{};       ///< In whole seconds.
  MonotonicTime sent{};
  MonotonicTime received{};
};

/// No answer, or not all of one.
struct HttpFailure {
  bool was_sent = true;  ///< False: the server cannot have seen the request.
  std::string why{};
};
using HttpResult = std::expected<HttpAnswer, HttpFailure>;

/// The date of an HTTP field (IMF-fixdate, RFC 9110 §5.6.7); none: it is none.
std::optional<StoreTime> parse_http_date(const std::string& text);

/// libcurl's multi interface on a thread of its own. It waits in curl_multi_poll() for sockets that
/// libcurl alone opens and closes, so that no loop of ours watches a descriptor that libcurl has
/// given back; a request costs two hops between threads, about 1 % of its way to the service.
/// Connections stay open between requests; their number has a bound, and requests above it wait.
class Transfers {
 public:
  /// `ca_file`: for requests that are not `is_trusted_system`; empty: the system's.
  Transfers(Loop& loop, std::string ca_file);
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  /// Sends once, at the first address of the host's name that accepts (RFC 8305). Loop's thread
  /// only.
  Task<HttpResult> ask(HttpRequest request);

  /// Ends all requests, as failures; later ones fail at once. Loop's thread only.
  void close();
  bool is_closed() const noexcept;

 private:
  class Worker;
  /// The addresses of a name, as libcurl takes them (CURLOPT_RESOLVE), that which accepted first.
  struct KnownName {
    std::string addresses;
    MonotonicTime until{};
  };
  Task<std::expected<std::string, HttpFailure>> addresses_of(std::string url,
                                                             MonotonicTime deadline);
  Task<std::expected<std::string, HttpFailure>> look_up_name(std::string host, std::string port,
                                                             MonotonicTime deadline);

  Loop& loop_;
  std::map<std::string, KnownName> names_;  ///< By HOST:PORT: the service's, and of credentials.
  std::unique_ptr<Worker> worker_;
};

}  // namespace idem::dynamodb
