#pragma once

#include "store/mysql/opening.hpp"

/// Which of the URL's servers the store uses, and that all of its connections use the same one.
namespace idem::mysql {

/// A connection, and what is known of its server.
struct Link {
  Link(Loop& loop, const Url& url) : connection(loop, url) {}
  Connection connection;
  ServerCheck server{};
  std::uint64_t turn = 0;      ///< Of ServerInUse, when it was opened.
  std::uint64_t compared = 0;  ///< The doubts when its store was compared last.
};

class Servers {
 public:
  explicit Servers(const Url& url) : url_(url) {}

  /// For the sessions of services.
  const std::shared_ptr<ServerInUse>& in_use() const noexcept { return in_use_; }

  /// The first connection; settles which store it is.
  Task<std::expected<Opened, std::string>> open(Link& link, IdentitySettings settings,
                                                MysqlOptions options);
  const StoreId& store_id() const noexcept { return store_id_; }

  /// Connects, unless the connection is open and leads to the server in use, and compares its
  /// store. False: no server is in reach, now or at a recent try, or the store is another one.
  Task<bool> reach(Link& link);
  bool is_ready(const Link& link) const noexcept;
  const std::string& why_out_of_reach() const noexcept { return why_; }

  /// The link's server accepts no writes any more: the next one is tried first.
  void leave(const Link& link) { in_use_->leave(link.turn, url_.hosts.size()); }
  /// Each connection's store is compared again before its next use.
  void doubt() noexcept { ++doubts_; }
  /// The fence of an attempt that is committed: a server without it has lost records.
  void note(const RecordId& id, Fence fence) { in_use_->note(id, fence); }

 private:
  Task<std::expected<void, std::string>> connect(Link& link);
  /// Whether the server of the open connection is still what a start accepts, and holds the store.
  Task<std::expected<void, std::string>> compare(Link& link);

  Url url_;
  StoreId store_id_{};
  std::shared_ptr<ServerInUse> in_use_ = std::make_shared<ServerInUse>();
  std::uint64_t doubts_ = 0;
  bool out_of_reach_ = false;
  std::string why_;
  MonotonicTime retry_at_{};
  Millis backoff_{};
};

}  // namespace idem::mysql
