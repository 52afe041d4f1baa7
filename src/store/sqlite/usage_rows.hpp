#pragma once

#include "core/transitions/quota.hpp"
#include "store/sqlite/connection.hpp"

#include <set>
#include <string>

namespace idem::sqlite {

/// Each scope's usage of its quota: read whole at a start and kept in memory. flush() writes one
/// row for each scope that changed, before the transaction ends.
class UsageRows {
 public:
  explicit UsageRows(sqlite3* db);

  Usage of(const std::string& scope) const { return book_.of(scope); }
  void add(const std::string& scope, const UsageChange& change);
  void flush();

 private:
  UsageBook book_;
  std::set<std::string> changed_;
  Statement put_;
  Statement drop_;
};

}  // namespace idem::sqlite
