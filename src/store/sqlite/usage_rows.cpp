#include "store/sqlite/usage_rows.hpp"

namespace idem::sqlite {

UsageRows::UsageRows(sqlite3* db)
    : put_(db, "REPLACE INTO idem_usage (scope, active, bytes) VALUES (?1, ?2, ?3)"),
      drop_(db, "DELETE FROM idem_usage WHERE scope = ?1") {
  Statement rows(db, "SELECT scope, active, bytes FROM idem_usage");
  while (rows.step()) {
    book_.add(std::string(rows.bytes(0)), {.active = rows.integer(1), .bytes = rows.integer(2)});
  }
}

// A change of the rate's moment alone is not written: a start forgets it.
void UsageRows::add(const std::string& scope, const UsageChange& change) {
  book_.add(scope, change);
  if (change.active != 0 || change.bytes != 0) changed_.insert(scope);
}

void UsageRows::flush() {
  for (const std::string& scope : changed_) {
    const Usage usage = book_.of(scope);
    const bool is_kept = usage.active != 0 || usage.bytes != 0;
    Statement& statement = is_kept ? put_ : drop_;
    statement.bind_text(1, scope);
    if (is_kept) {
      statement.bind(2, static_cast<std::int64_t>(usage.active));
      statement.bind(3, static_cast<std::int64_t>(usage.bytes));
    }
    statement.run();
  }
  changed_.clear();
}

}  // namespace idem::sqlite
