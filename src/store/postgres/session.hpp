#pragma once

#include "store/postgres/connection.hpp"
#include "store/postgres/lineage.hpp"
#include "store/postgres/prepared.hpp"

#include <span>
#include <vector>

namespace idem::postgres {

/// A blocking connection for one thread at a time, without a loop. All its waits have an end.
class Session {
 public:
  using Address = std::string;
  using Server = Lineage;
  static std::int64_t turn_of(const Lineage& lineage) { return lineage.timeline(); }
  /// The scheduler's own connections find out.
  static void doubt(Lineage&) noexcept {}

  explicit Session(std::string uri) : uri_(std::move(uri)) {}
  ~Session() { close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// As Connection::open(), then checks as on each new connection that the server is safe and has
  /// the store `store_id` with everything that `lineage` knows. The error is for people; nothing is
  /// open then.
  std::expected<void, std::string> open(const Uuid& store_id, Lineage& lineage);
  /// False: the store has met a server that was promoted later.
  bool is_current() const {
    return timeline_ == 0 || (lineage_ != nullptr && timeline_ >= lineage_->timeline());
  }

  /// As Connection::ask().
  QueryResult ask(std::string_view sql, const Params& params, Millis patience) {
    return ask({sql, params.raw()}, patience);
  }
  enum class Format : std::uint8_t { text = 0, binary = 1 };
  struct Asked {
    std::string_view sql;
    Params::Raw params{};
    Format format = Format::binary;  ///< Of all cells of the result.
    Kept kept = Kept::never;
  };
  QueryResult ask(const Asked& asked, Millis patience);
  /// Several in one round trip; the server skips those behind a failed one. Returns their results,
  /// of which only the last can be a failure. A lost connection is the failure of all of them.
  std::vector<QueryResult> ask_all(std::span<const Asked> asked, Millis patience);
  /// As Connection::run().
  QueryResult run(std::string_view script, Millis patience);

  /// From here on no prepared statement is used: the work may have changed its meaning, or have
  /// deallocated it.
  void invalidate_prepared();
  /// Prepared statements are used again, for the next transaction. Returns the names to deallocate
  /// first.
  std::vector<std::string> trust();

  /// True if an idle session has received nothing since its last use, such as the server's goodbye.
  /// Sends nothing: a silently broken connection shows only at its next use.
  bool is_still_there() const noexcept;

  bool is_open() const noexcept { return connection_ != nullptr; }
  bool is_idle() const noexcept;
  bool may_be_kept() const noexcept { return is_idle(); }
  /// In a transaction, of which no statement failed.
  bool is_in_transaction() const noexcept;
  bool is_in_failed_transaction() const noexcept;
  /// Null if it is not open.
  pg_conn* native() const noexcept { return connection_; }

  /// Ends an open transaction, too: the server rolls it back.
  void close() noexcept;

 private:
  /// Both until deadline_; they check nothing.
  std::expected<void, std::string> connect();
  std::expected<void, std::string> connect_at(const Place* place);
  /// False: the deadline came first.
  bool ready(short events) const noexcept;
  /// The name to use. Empty behind a pooler, where each transaction may reach another server.
  Prepared::Name name_of(const Asked& asked);
  bool send(const Asked& asked, const Prepared::Name& name) noexcept;
  /// False: it is lost.
  bool flush() noexcept;
  bool is_readable() noexcept;
  void note_failure(const Asked& asked, const Prepared::Name& name, const Failure& failure);
  /// The result of one statement.
  QueryResult next_reply();
  /// The end of a pipeline. False: it is lost.
  bool receive_sync() noexcept;
  /// Closes; for what was sent.
  Failure lost(bool was_sent);

  std::string uri_;
  pg_conn* connection_ = nullptr;
  MonotonicTime deadline_{};
  const Lineage* lineage_ = nullptr;
  std::int64_t timeline_ = 0;  ///< The server's at opening; 0: not known.
  Prepared prepared_;
  bool is_direct_ = false;  ///< Connected to the server itself, not to a pooler.
  bool is_trusted_ = true;
};

}  // namespace idem::postgres
