#pragma once

#include "store/redis/connection.hpp"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

/// The servers of a store, their slots, and the connections to them: one server, the master that
/// sentinels name, or the masters of a cluster. Loop's thread only.
namespace idem::redis {

inline constexpr unsigned cluster_slots = 16'384;

/// The cluster slot of keys with this tag: CRC16 (XMODEM) of the text in braces (Redis Cluster
/// specification, "Hash tags").
unsigned slot_of(std::string_view tag) noexcept;

class Servers {
 public:
  /// Checks each connection before its use. None: it is fit; otherwise the reason against it.
  using Check = std::function<Task<std::optional<std::string>>(Connection&)>;

  /// `lanes`: connections to each server; slots are spread over them. Before it syncs its log, a
  /// server runs all that it has read from each connection, so several make larger groups.
  Servers(Loop& loop, Url url, Millis patience, unsigned lanes);
  ~Servers();

  void set_check(Check check) { check_ = std::move(check); }

  /// Finds the servers and connects to the first. The error is for people.
  Task<std::expected<void, std::string>> open();

  /// Asks the server of `slot`, and follows redirections. If the server is out of reach, nothing
  /// was sent: the error is not in doubt.
  Task<CommandResult> ask(unsigned slot, std::string command);

  /// The same, but waits for nothing except the reply: without a connection it is an error, and a
  /// redirection is returned as it came.
  Task<CommandResult> ask_open(unsigned slot, std::string command);

  /// The connection for `slot`, made if need be. Null: out of reach, see why().
  Task<Connection*> of(unsigned slot);
  /// The same if it is connected already; else null.
  Connection* open_at(unsigned slot) const noexcept;
  const std::string& why() const noexcept { return why_; }

  /// The servers that hold slots, as far as known; connected or not.
  std::vector<Connection*> owners() const;

  void close();
  bool is_closed() const noexcept { return is_closed_; }

 private:
  struct Server;

  Server& server(const Address& address, unsigned slot);
  void set_master(const Address& address);
  Task<bool> reach(Server& server);
  Task<bool> connect(Server& server);
  Task<bool> find_master();
  Task<std::optional<Address>> ask_sentinels();
  Task<bool> learn_slots();
  Task<bool> learn_slots_from(Connection& connection);
  /// False: the redirection does not name a server.
  bool learn_moved(const Reply& error, unsigned slot, const Connection& by);

  Loop& loop_;
  Url url_;
  Millis patience_;
  Check check_;
  TlsContext tls_;
  unsigned lanes_;
  std::map<std::pair<Address, unsigned>, std::unique_ptr<Server>> servers_;
  std::vector<Server*> slots_;      ///< Of a cluster; null: the slot's server is unknown.
  std::vector<Server*> masters_{};  ///< Without a cluster, by lane; empty: unknown yet.
  std::string why_ = "no server was asked yet";
  MonotonicTime learn_again_{};
  std::vector<Resumption<bool>> finding_;
  bool is_finding_ = false;
  MonotonicTime find_again_{};
  bool is_closed_ = false;
};

}  // namespace idem::redis
