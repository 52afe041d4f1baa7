#pragma once

#include <idem/transaction.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

struct sqlite3;
struct sqlite3_stmt;

namespace idem::sqlite {

/// A service's own statements on the store's connection. While works() they may not end or divide
/// the transaction, change how the connection is set up, or write to the store's tables, whose
/// names begin with "idem_". One per connection, on its thread; before it is closed.
class ServiceSql {
 public:
  explicit ServiceSql(sqlite3* db);
  ~ServiceSql();
  ServiceSql(const ServiceSql&) = delete;
  ServiceSql& operator=(const ServiceSql&) = delete;

  sqlite3* db() const noexcept { return db_; }

  /// The service's turn begins, or ends: outside of it every statement is the store's.
  void works(bool now) noexcept { turn_.works = now; }
  /// The service gets the connection itself, for the rest of its turn.
  sqlite3* lend() noexcept {
    is_lent_ = true;
    return db_;
  }
  /// After such a turn: what of it is in the store's way, and is so no more. Outside of its turn.
  std::optional<std::string> take_back();
  /// Whether a table that it made since then refers to one of the store's. Outside of its turn.
  bool refers_to_records();

  /// One statement, in which `$1`, `$2`... stand for `values`; kept for the next time. The error is
  /// SQLite's.
  std::expected<SqlRows, std::string> ask(std::string_view sql, std::span<const SqlValue> values);
  /// Of the last ask() that failed by a constraint, as the SQL standard numbers it; else empty.
  std::string_view sqlstate() const noexcept { return sqlstate_; }

  struct Turn {
    bool works = false;
    bool made_table = false;
  };

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };
  using OwnedStatement = std::unique_ptr<sqlite3_stmt, Finalize>;

  std::expected<sqlite3_stmt*, std::string> prepared(std::string_view sql);

  /// True: the hook was ours.
  bool hook_commits();

  sqlite3* db_;
  Turn turn_;
  bool is_lent_ = false;
  std::string_view sqlstate_;
  std::unordered_map<std::string, OwnedStatement> statements_;
  std::unordered_map<std::string, OwnedStatement> own_statements_;
};

}  // namespace idem::sqlite
