#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace idem::test {

/// Lets the first messages of the clients of one or more proxies pass; the next one and all that
/// come later are held until the client or the proxy ends.
class MessageGate {
 public:
  explicit MessageGate(int passing) : passing_(passing) {}
  bool may_pass() { return ++came_ <= passing_; }
  bool is_closed() const { return came_ > passing_; }
  int came() const { return came_; }

 private:
  const int passing_;
  std::atomic<int> came_{0};
};

/// Between a client and a server; can lose an answer on its way, as a network does.
class CuttingProxy {
 public:
  /// `target`: the path of the server's unix socket, or HOST:PORT.
  /// It listens on a free port of `host`, an IPv4 address of this machine.
  explicit CuttingProxy(std::string target, const std::string& host = "127.0.0.1");
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  std::uint16_t port() const { return port_; }

  /// The next bytes that the server sends on a connection whose client has sent a message with
  /// `part` in it are lost, and that connection is cut, both ways.
  void lose_answer_to(std::string part);
  /// The next message with `part` in it does not arrive; its connection is cut, both ways.
  void lose_message(std::string part);
  /// Of the next bytes with `part` in them only what comes before it arrives; their connection is
  /// cut, both ways.
  void cut_before(std::string part);
  /// From now on each piece that the server sends is lost with this chance, and its connection is
  /// cut, both ways.
  void lose_answers(double chance, unsigned seed);
  /// Before the first client comes.
  void hold_by(std::shared_ptr<MessageGate> gate) { gate_ = std::move(gate); }
  /// How many answers and messages were lost so far.
  int lost() const { return lost_.load(); }

 private:
  void accept_all();
  void carry(int client);
  void wait_for_end(int client) const;
  bool falls();
  bool is_marked(std::string& part, std::string_view bytes);
  /// How many of these bytes are to arrive; none: all of them.
  std::optional<std::size_t> cut_of(std::string_view bytes);

  std::string target_;
  std::shared_ptr<MessageGate> gate_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int> lost_{0};
  std::mutex mutex_;
  std::string part_;
  std::string lost_part_;
  std::string cut_part_;
  double chance_ = 0;
  std::mt19937 dice_;
  std::vector<std::thread> carriers_;
  std::thread acceptor_;
};

}  // namespace idem::test
