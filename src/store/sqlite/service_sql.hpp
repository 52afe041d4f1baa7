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

/// A service's own statements on the store's connection. During the service's turn they must not
/// end or divide the transaction, change the connection's settings, or write to the store's tables,
/// whose names begin with "idem_". One per connection, on its thread; destroyed before it closes.
class ServiceSql {
 public:
  explicit ServiceSql(sqlite3* db);
  ~ServiceSql();
  ServiceSql(const ServiceSql&) = delete;
  ServiceSql& operator=(const ServiceSql&) = delete;

  sqlite3* db() const noexcept { return db_; }

  /// Begins or ends the service's turn: outside of it every statement is the store's.
  void works(bool now) noexcept { turn_.works = now; }
  /// Lends the connection itself to the service, for the rest of its turn.
  sqlite3* lend() noexcept {
    is_lent_ = true;
    return db_;
  }
  /// What SQLite says of the last failed call on a connection that is lent; empty: it did not fail,
  /// or the connection is not lent.
  std::string failure_of_lent() const;
  /// After a turn with lend(): removes what the service left behind, and says what that was. Must
  /// come outside of a turn.
  std::optional<std::string> take_back();
  /// Whether a table that the service made refers to one of the store's. Must come outside of a
  /// turn.
  bool refers_to_records();

  /// Runs one statement with the parameters `$1`, `$2`... and keeps it prepared. The error is
  /// SQLite's.
  std::expected<SqlRows, std::string> ask(std::string_view sql, std::span<const SqlValue> values);
  /// The SQLSTATE of the last ask() if a constraint failed; else empty.
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

  /// True: the hook before was ours.
  bool hook_commits();

  sqlite3* db_;
  Turn turn_;
  bool is_lent_ = false;
  std::string_view sqlstate_;
  std::unordered_map<std::string, OwnedStatement> statements_;
  std::unordered_map<std::string, OwnedStatement> own_statements_;
};

}  // namespace idem::sqlite
