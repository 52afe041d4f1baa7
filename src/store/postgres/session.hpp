#pragma once

#include "store/postgres/connection.hpp"

namespace idem::postgres {

/// A connection for who blocks on it: one thread at a time, and no loop. All its waits end.
class Session {
 public:
  explicit Session(std::string uri) : uri_(std::move(uri)) {}
  ~Session() { close(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// As Connection::open(), then asks what each new connection is asked: whether the server is
  /// safe, and the store `store_id`. The error is for people; nothing is open then.
  std::expected<void, std::string> open(const Uuid& store_id);

  /// As Connection::ask().
  Answer ask(std::string_view sql, const Params& params, Millis patience) {
    return ask(sql, params.raw(), Format::binary, patience);
  }
  enum class Format : std::uint8_t { text = 0, binary = 1 };
  /// `format`: of all cells of the answer.
  Answer ask(std::string_view sql, const Params::Raw& params, Format format, Millis patience);
  /// As Connection::run().
  Answer run(std::string_view script, Millis patience);

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
  Answer answer();
  /// Closes; for what was sent.
  Failure lost(bool was_sent);

  std::string uri_;
  pg_conn* connection_ = nullptr;
  MonotonicTime deadline_{};
};

}  // namespace idem::postgres
