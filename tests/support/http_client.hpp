#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/http_message.hpp"
#include "support/socket.hpp"

namespace idem::test {

struct Request {
  std::string method = "POST";
  std::string target = "/charges";
  std::vector<Field> fields{};
  std::string body{};
};

/// The request on the wire; Host and, with a body or for POST, PUT and PATCH, Content-Length are
/// added where missing.
std::string to_wire(const Request& request);

struct Response {
  int status = 0;  ///< 0: no whole answer came; `trouble` says why.
  std::string reason{};
  std::vector<Field> fields{};
  std::string body{};
  std::string raw{};           ///< The final answer's bytes.
  std::vector<int> interim{};  ///< 1xx that came before.
  std::string trouble{};

  std::optional<std::string> get(std::string_view name) const { return find_field(fields, name); }
  std::size_t count(std::string_view name) const { return count_fields(fields, name); }
};

/// One client connection. Nothing is ever sent a second time.
class Connection {
 public:
  explicit Connection(std::string_view address, std::string_view from = {})
      : socket_(Socket::connect_to(address, from)) {}

  /// With TLS; not open when the handshake failed.
  Connection(std::string_view address, const TlsSide& side) : Connection(address) {
    if (!socket_.secure_as_client(side)) socket_.close();
  }

  bool open() const { return socket_.open(); }
  Socket& socket() { return socket_; }

  bool send_raw(std::string_view bytes) { return socket_.send_all(bytes); }
  bool send(const Request& request);
  /// The next answer. An answer to HEAD has no body, which only the caller knows.
  Response read_response(bool to_head = false);
  Response exchange(const Request& request);

  /// Everything until the other side closes.
  std::string read_until_close();
  /// True when the other side closes without sending more.
  bool closed_by_peer();

 private:
  bool fill();
  bool read_body(Response& response, bool to_head, std::size_t head_bytes);

  Socket socket_;
  std::string buffer_;
  std::string trouble_;
};

/// One request on a connection of its own; to an admin listener as its operator, unless the request
/// has another login.
Response send_once(std::string_view address, const Request& request);
Response send_once(std::string_view address, const TlsSide& side, const Request& request);

}  // namespace idem::test
