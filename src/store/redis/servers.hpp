#pragma once

#include "store/redis/connection.hpp"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

/// Which server has what, and the connections to them: one server, the master that sentinels name,
/// or the masters of a cluster. Loop's thread only.
namespace idem::redis {

inline constexpr unsigned cluster_slots = 16'384;

/// The slot of a cluster in which a key of this tag lies: CRC16 (XMODEM) of what stands in braces
/// (Redis Cluster specification, "Hash tags").
unsigned slot_of(std::string_view tag) noexcept;

class Servers {
 public:
  /// Asked of each connection before it is used: none, or why it must not be.
  using Check = std::function<Task<std::optional<std::string>>(Connection&)>;

  /// `lanes`: connections to each server; slots are spread over them. A server takes as much of
  /// each as it reads at once before it syncs its log, so several make larger groups.
  Servers(Loop& loop, Url url, Millis patience, unsigned lanes);
  ~Servers();

  void set_check(Check check) { check_ = std::move(check); }

  /// Finds out who is who. The error is for people.
  Task<std::expected<void, std::string>> open();

  /// Asks the server of `slot`, where redirections lead if need be. What is out of reach was not
  /// asked: not in doubt.
  Task<CommandResult> ask(unsigned slot, std::string command);

  /// The same without waiting for anything but the reply: where there is no connection, and where
  /// a redirection would have to be followed, it says so.
  Task<CommandResult> ask_open(unsigned slot, std::string command);

  /// The connection that has `slot`, made if need be. None: out of reach, see why().
  Task<Connection*> of(unsigned slot);
  /// The same where it is connected already; else none.
  Connection* open_at(unsigned slot) const noexcept;
  const std::string& why() const noexcept { return why_; }

  /// Those that hold something now, as far as is known; connected or not.
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
  /// False: it does not say where.
  bool learn_moved(const Reply& error, unsigned slot, const Connection& by);

  Loop& loop_;
  Url url_;
  Millis patience_;
  Check check_;
  TlsContext tls_;
  unsigned lanes_;
  std::map<std::pair<Address, unsigned>, std::unique_ptr<Server>> servers_;
  std::vector<Server*> slots_;      ///< Of a cluster; null: nobody is known to have it.
  std::vector<Server*> masters_{};  ///< Otherwise, by lane; none: unknown yet.
  std::string why_ = "no server was asked yet";
  MonotonicTime learn_again_{};
  std::vector<Resumption<bool>> finding_;
  bool is_finding_ = false;
  MonotonicTime find_again_{};
  bool is_closed_ = false;
};

}  // namespace idem::redis
