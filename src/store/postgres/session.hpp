#pragma once

#include "store/postgres/connection.hpp"
#include "store/postgres/lineage.hpp"
#include "store/postgres/prepared.hpp"

#include <span>
#include <vector>

namespace idem::postgres {

/// A connection for who blocks on it: one thread at a time, and no loop. All its waits end.
class Session {
 public:
  explicit Session(std::string uri) : uri_(std::move(uri)) {}
  ~Session() { close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// As Connection::open(), then asks what each new connection is asked: whether the server is
  /// safe, and the store `store_id` with all that `lineage` knows of. The error is for people;
  /// nothing is open then.
  std::expected<void, std::string> open(const Uuid& store_id, Lineage& lineage);
  /// Of its server, when it was opened; 0: it is not known.
  std::int64_t timeline() const noexcept { return timeline_; }

  /// As Connection::ask().
  QueryResult ask(std::string_view sql, const Params& params, Millis patience) {
    return ask({sql, params.raw()}, patience);
  }
  enum class Format : std::uint8_t { text = 0, binary = 1 };
  struct Asked {
    std::string_view sql;
    Params::Raw params{};
    Format format = Format::binary;  ///< Of all cells of the answer.
    Kept kept = Kept::never;
  };
  QueryResult ask(const Asked& asked, Millis patience);
  /// Several in one round trip, each as far as none before it failed: their answers, of which only
  /// the last can be a failure. One that lost the connection speaks of all that were sent.
  std::vector<QueryResult> ask_all(std::span<const Asked> asked, Millis patience);
  /// As Connection::run().
  QueryResult run(std::string_view script, Millis patience);

  /// From here on nothing that is prepared is used: what was done to the session may have changed
  /// what it means, or have taken it away.
  void invalidate_prepared();
  /// It is trusted again, as for the next transaction. Names that are to be deallocated first.
  std::vector<std::string> trust();

  /// Whether one that waited for its next use has heard nothing meanwhile, such as a goodbye. Asks
  /// nothing: what broke without a word shows only when it is used.
  bool is_still_there() const noexcept;

  bool is_open() const noexcept { return connection_ != nullptr; }
  bool is_idle() const noexcept;
  /// In a transaction, of which no statement failed.
  bool is_in_transaction() const noexcept;
  bool is_in_failed_transaction() const noexcept;
  /// Null where it is not open.
  pg_conn* native() const noexcept { return connection_; }

  /// Which ends a transaction that is open: the server rolls back what nobody committed.
  void close() noexcept;

 private:
  /// False: the deadline came first.
  bool ready(short events) const noexcept;
  /// How to ask it. Behind a pooler each transaction may meet another server, which knows nothing.
  Prepared::Name name_of(const Asked& asked);
  bool send(const Asked& asked, const Prepared::Name& name) noexcept;
  /// False: it is lost.
  bool flush() noexcept;
  bool is_readable() noexcept;
  void note_failure(const Asked& asked, const Prepared::Name& name, const Failure& failure);
  /// What one statement was answered.
  QueryResult next_reply();
  /// The end of a pipeline. False: it is lost.
  bool hear_sync() noexcept;
  /// Closes; for what was sent.
  Failure lost(bool was_sent);

  std::string uri_;
  pg_conn* connection_ = nullptr;
  MonotonicTime deadline_{};
  std::int64_t timeline_ = 0;
  Prepared prepared_;
  bool is_direct_ = false;  ///< Nothing stands between this and its one server.
  bool is_trusted_ = true;
};

}  // namespace idem::postgres
