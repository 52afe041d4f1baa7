#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "support/socket.hpp"

namespace idem::test {

/// An address of this machine that swallows packets: it listens, and its backlog is full, so that
/// the kernel drops each further SYN. A client gets neither a connection nor a refusal.
class BlackHole {
 public:
  /// On this address of 127.0.0.0/8 (or ::1), and on a free port, or on that one.
  explicit BlackHole(const std::string& host = "127.0.0.2", int port = 0);
  BlackHole(const BlackHole&) = delete;
  BlackHole& operator=(const BlackHole&) = delete;
  ~BlackHole();

  bool is_black() const { return listener_ >= 0; }
  int port() const { return port_; }
  std::string host() const { return host_; }

 private:
  std::string host_;
  int port_ = 0;
  int listener_ = -1;
  std::vector<int> fillers_;
};

/// A descriptor that listens on this address and port; -1: it cannot.
int listen_at(const std::string& host, int port, int backlog = 64);

/// Runs `work` on a thread that sees these lines as /etc/hosts, as do the threads that it starts:
/// for what looks a name up in this process. False: only root may have that.
bool run_with_hosts(const std::filesystem::path& hosts, const std::function<void()>& work);

}  // namespace idem::test
