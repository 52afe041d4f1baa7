#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace idem::cli {

/// Sockets that listened before this process began: systemd's socket units, or the process before,
/// passed them (sd_listen_fds(3)).
class PassedSockets {
 public:
  /// Takes them out of the environment, so that no child takes them for its own.
  PassedSockets();
  ~PassedSockets();
  PassedSockets(const PassedSockets&) = delete;
  PassedSockets& operator=(const PassedSockets&) = delete;

  /// The one that listens on HOST:PORT, for a listener of this role ("gateway", "admin"), which its
  /// name (LISTEN_FDNAMES) may be; -1: there is none. A host that is a name, and port 0, are known
  /// by the socket's name alone.
  int take(const std::string& address, std::string_view role);

  /// Closes those that nobody took, so that no client waits there; their addresses.
  std::vector<std::string> close_rest();

 private:
  struct Socket {
    int descriptor;
    std::string name;
    std::string host;  ///< Empty: it does not listen, or not by TCP.
    std::string port;
  };
  std::vector<Socket> sockets_;
};

}  // namespace idem::cli
