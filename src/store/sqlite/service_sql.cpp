#include "store/sqlite/service_sql.hpp"

#include "store/named_values.hpp"
#include "store/sqlite/connection.hpp"

#include <idem/limits.hpp>

#include <charconv>
#include <optional>
#include <utility>

namespace idem::sqlite {
namespace {

bool is_ours(const char* name) {
  return name != nullptr && sqlite3_strnicmp(name, "idem_", 5) == 0;
}

/// A temporary table hides the store's table of the same name from every statement; a temporary
/// trigger fires on it. UPDATE is allowed: SQLite itself does it there when a table is renamed.
bool is_temporary(int action, const char* database) {
  return database != nullptr && std::string_view(database) == "temp" && action != SQLITE_READ &&
         action != SQLITE_UPDATE;
}

/// Denies a service's statements that would end or divide the batch's transaction, change the
/// connection's settings, or write records. SQLite calls it when it prepares a statement
/// (sqlite3_set_authorizer).
int authorize(void* service, int action, const char* first, const char* second,
              const char* database, const char*) {
  auto& turn = *static_cast<ServiceSql::Turn*>(service);
  if (!turn.works) return SQLITE_OK;
  if (is_temporary(action, database)) return SQLITE_DENY;
  switch (action) {
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
    case SQLITE_ATTACH:
    case SQLITE_DETACH:
    case SQLITE_PRAGMA:
      return SQLITE_DENY;
    case SQLITE_CREATE_TABLE:
      turn.made_table = true;
      return is_ours(first) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
    case SQLITE_DROP_TABLE:
      return is_ours(first) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_ALTER_TABLE:
      turn.made_table = true;
      return is_ours(second) ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_CREATE_INDEX:
    case SQLITE_DROP_INDEX:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_DROP_TRIGGER:
      return is_ours(second) ? SQLITE_DENY : SQLITE_OK;
    default:
      return SQLITE_OK;
  }
}

struct Bind {
  sqlite3_stmt* statement;
  int at;

  int operator()(std::monostate) const { return sqlite3_bind_null(statement, at); }
  int operator()(std::int64_t value) const { return sqlite3_bind_int64(statement, at, value); }
  int operator()(bool value) const { return sqlite3_bind_int(statement, at, value ? 1 : 0); }
  int operator()(double value) const { return sqlite3_bind_double(statement, at, value); }
  int operator()(const std::string& value) const {
    return sqlite3_bind_text64(statement, at, value.data(), value.size(), SQLITE_STATIC,
                               SQLITE_UTF8);
  }
  int operator()(const SqlBytes& value) const {
    return sqlite3_bind_blob64(statement, at, value.bytes.data(), value.bytes.size(),
                               SQLITE_STATIC);
  }
};

SqlValue value_of(sqlite3_stmt* statement, int at) {
  const auto text = [&](const void* begin) {
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, at));
    return begin == nullptr ? std::string() : std::string(static_cast<const char*>(begin), size);
  };
  switch (sqlite3_column_type(statement, at)) {
    case SQLITE_INTEGER:
      return std::int64_t{sqlite3_column_int64(statement, at)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, at);
    case SQLITE_TEXT:
      return text(sqlite3_column_text(statement, at));
    case SQLITE_BLOB:
      return SqlBytes{text(sqlite3_column_blob(statement, at))};
    default:
      return std::monostate{};
  }
}

/// 1 for `$1`; 0: the name is not of that form.
std::size_t number_of(const char* name) {
  if (name == nullptr || *name != '$') return 0;
  const std::string_view text = name + 1;
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc{} && parsed.ptr == end ? number : 0;
}

/// SQLite regards `$1`, `$2`... as names: each gets the value of its number wherever it occurs. Not
/// all statements of ours name all of their values.
std::optional<std::string> bind(sqlite3_stmt* statement, std::span<const SqlValue> values,
                                bool is_service) {
  const int names = sqlite3_bind_parameter_count(statement);
  std::set<std::size_t> named;
  for (int at = 1; at <= names; ++at) {
    const char* const name = sqlite3_bind_parameter_name(statement, at);
    const std::size_t number = number_of(name);
    if (number == 0 || (!is_service && number > values.size())) {
      return std::string("no value for the parameter ") + (name == nullptr ? "?" : name) +
             ": write $1, $2 and so on";
    }
    named.insert(number);
  }
  if (is_service) {
    if (auto wrong = parameter_mismatch(named, values.size())) return wrong;
  }
  for (int at = 1; at <= names; ++at) {
    const auto& value = values[number_of(sqlite3_bind_parameter_name(statement, at)) - 1];
    if (std::visit(Bind{statement, at}, value) != SQLITE_OK) return "a value is too large";
  }
  return std::nullopt;
}

}  // namespace

ServiceSql::ServiceSql(sqlite3* db) : db_(db) {
  sqlite3_set_authorizer(db_, authorize, &turn_);
  hook_commits();
}

bool ServiceSql::hook_commits() {
  // ON CONFLICT ROLLBACK ends the transaction from within; no later statement may become durable.
  const auto refuse = [](void* turn) { return static_cast<Turn*>(turn)->works ? 1 : 0; };
  return sqlite3_commit_hook(db_, refuse, &turn_) == &turn_;
}

std::string ServiceSql::failure_of_lent() const {
  const int code = is_lent_ ? sqlite3_errcode(db_) : SQLITE_OK;
  const bool is_none = code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE;
  return is_none ? std::string() : sqlite3_errmsg(db_);
}

std::optional<std::string> ServiceSql::take_back() {
  if (!std::exchange(is_lent_, false)) return std::nullopt;
  std::optional<std::string> why;
  if (!hook_commits()) why = "the work replaced the store's commit hook";
  // A writing statement in the middle keeps a savepoint from ending, and so would break the whole
  // batch. No statement of the store is in the middle here.
  for (sqlite3_stmt* one = sqlite3_next_stmt(db_, nullptr); one != nullptr;
       one = sqlite3_next_stmt(db_, one)) {
    if (sqlite3_stmt_busy(one) == 0) continue;
    sqlite3_reset(one);
    why = "the work left a statement in the middle of its rows";
  }
  return why;
}

ServiceSql::~ServiceSql() {
  sqlite3_set_authorizer(db_, nullptr, nullptr);
  sqlite3_commit_hook(db_, nullptr, nullptr);
}

// A foreign key would make the store's own deletes and updates fail, or cascade to rows of the
// service.
bool ServiceSql::refers_to_records() {
  if (!std::exchange(turn_.made_table, false)) return false;
  const auto found =
      ask("SELECT 1 FROM sqlite_schema s, pragma_foreign_key_list(s.name) f"
          " WHERE s.type = 'table' AND f.\"table\" LIKE 'idem\\_%' ESCAPE '\\' LIMIT 1",
          {});
  return !found || !found->empty();
}

void ServiceSql::Finalize::operator()(sqlite3_stmt* statement) const noexcept {
  sqlite3_finalize(statement);
}

std::expected<sqlite3_stmt*, std::string> ServiceSql::prepared(std::string_view sql) {
  // Two maps: a service must not reuse a statement that only Idem itself may run.
  auto& statements = turn_.works ? statements_ : own_statements_;
  const auto known = statements.find(std::string(sql));
  if (known != statements.end()) return known->second.get();
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  if (sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                         &raw, &rest) != SQLITE_OK) {
    return std::unexpected(sqlite3_errmsg(db_));
  }
  OwnedStatement statement(raw);
  if (!statement) return std::unexpected("there is no statement");
  const std::string_view more(rest, static_cast<std::size_t>(sql.data() + sql.size() - rest));
  if (more.find_first_not_of(" \t\r\n;") != more.npos) {
    return std::unexpected("more than one statement");
  }
  if (statements.size() >= limits::service_statements_max) statements.clear();
  return statements.emplace(sql, std::move(statement)).first->second.get();
}

namespace {

/// Resets also if there is no memory for a row: the statement is kept, and must start anew.
class Reset {
 public:
  explicit Reset(sqlite3_stmt* statement) : statement_(statement) {}
  ~Reset() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);  // They point into the caller's memory.
  }
  Reset(const Reset&) = delete;
  Reset& operator=(const Reset&) = delete;

 private:
  sqlite3_stmt* statement_;
};

/// PostgreSQL's code for the same failure.
std::string_view sqlstate_of(int code) {
  switch (code) {
    case SQLITE_CONSTRAINT_NOTNULL:
      return "23502";
    case SQLITE_CONSTRAINT_FOREIGNKEY:
      return "23503";
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_ROWID:
      return "23505";
    case SQLITE_CONSTRAINT_CHECK:
      return "23514";
    default:
      return {};
  }
}

}  // namespace

std::expected<SqlRows, std::string> ServiceSql::ask(std::string_view sql,
                                                    std::span<const SqlValue> values) {
  sqlstate_ = {};
  const auto statement = prepared(sql);
  if (!statement) return std::unexpected(statement.error());
  const Reset reset(*statement);
  if (auto why = bind(*statement, values, turn_.works)) return std::unexpected(std::move(*why));
  SqlRows rows;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(*statement)) == SQLITE_ROW) {
    SqlRow& row = rows.emplace_back();
    for (int at = 0; at < sqlite3_column_count(*statement); ++at) {
      row.push_back(value_of(*statement, at));
    }
  }
  if (code == SQLITE_DONE) return rows;
  sqlstate_ = sqlstate_of(sqlite3_extended_errcode(db_));
  return std::unexpected(sqlite3_errmsg(db_));
}

}  // namespace idem::sqlite
