#pragma once

#include "core/transitions/quota.hpp"
#include "store/sqlite/connection.hpp"

#include <set>
#include <string>

namespace idem::sqlite {

/// What each scope has of its quota: read whole at a start and kept in memory; of those that
/// changed, one row each is written before their transaction ends.
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
