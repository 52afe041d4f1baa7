#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "support/tls_layer.hpp"

namespace idem::test {

/// A blocking TCP connection for tests. Receiving fails after the support library's patience.
class Socket {
 public:
  Socket() = default;
  /// Takes a connected descriptor.
  explicit Socket(int fd);
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;

  /// Connects to `HOST:PORT` with a numeric IPv4 host; not open when nobody accepts. `from`: the
  /// IPv4 address that the other side sees, any of 127.0.0.0/8 here.
  static Socket connect_to(std::string_view address, std::string_view from = {});
  /// The same, with as small a window as the kernel allows: it takes little that is not read.
  static Socket connect_with_small_window(std::string_view address, std::string_view from);

  /// Puts TLS on it; false when the handshake failed.
  bool secure_as_client(const TlsSide& side);
  bool secure_as_server(ssl_ctx_st* server);
  TlsLayer* tls() { return tls_.get(); }

  bool open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  bool send_all(std::string_view bytes);

  enum class Received : std::uint8_t { bytes, end, reset, timeout };
  /// Appends what arrived to `into`.
  Received receive(std::string& into);
  /// True once there is something to receive, an end included.
  bool readable_within(int milliseconds) const;

  /// True once the connection is reset or closed both ways, whatever there is still to read.
  bool hung_up() const;

  /// With TLS its end is announced first; close() and reset() do not.
  void half_close();
  /// Closes with a RST instead of a FIN.
  void reset();
  void close();

 private:
  static Socket connect_from(std::string_view address, std::string_view from, int window);

  int fd_ = -1;
  std::unique_ptr<TlsLayer> tls_;
};

/// Appends to `seen` until it contains `part`; false when the other side ends first.
inline bool read_until(Socket& socket, std::string& seen, std::string_view part) {
  while (seen.find(part) == std::string::npos) {
    if (socket.receive(seen) != Socket::Received::bytes) return false;
  }
  return true;
}

/// Listens on a free port of 127.0.0.1; the descriptor, or -1.
int listen_anywhere();
/// HOST:PORT that a descriptor is bound to.
std::string local_address(int fd);
/// An address of 127.0.0.1 on which nobody listens at this moment.
std::string unused_address();

}  // namespace idem::test
