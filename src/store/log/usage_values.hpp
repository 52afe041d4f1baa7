#pragma once

#include "core/transitions/quota.hpp"
#include "store/log/database.hpp"

#include <set>

namespace idem::segments {

/// Each scope's usage of its quota: read whole at a start and kept in memory. flush() writes a
/// value for each scope that changed, before the transaction ends.
class UsageValues {
 public:
  explicit UsageValues(Database& db);

  Usage of(const std::string& scope) const { return book_.of(scope); }
  void add(const std::string& scope, const UsageChange& change);
  void flush();

 private:
  Database& db_;
  UsageBook book_;
  std::set<std::string> changed_;
};

}  // namespace idem::segments
