#pragma once

#include "core/transitions/quota.hpp"
#include "store/embedded/in_common.hpp"
#include "store/log/database.hpp"

#include <set>

namespace idem::segments {

/// Each scope's usage of its quota by this shard, and by all: read whole at a start and kept in
/// memory. flush() writes a value for each scope that changed, before the transaction ends.
class UsageValues {
 public:
  /// Adds them to those of the other shards, if there are some.
  UsageValues(Database& db, embedded::InCommon* in_common);

  Usage of(const std::string& scope) const {
    return in_common_ != nullptr ? in_common_->usage.of(scope) : book_.of(scope);
  }
  std::unique_lock<std::mutex> lock(const std::string& scope) {
    if (in_common_ == nullptr) return {};
    return in_common_->usage.lock(scope);
  }
  void add(const std::string& scope, const UsageChange& change);
  void flush();
  static std::string to_value(std::uint64_t active, std::uint64_t bytes);

 private:
  Database& db_;
  embedded::InCommon* in_common_;
  UsageBook book_;
  std::set<std::string> changed_;
};

}  // namespace idem::segments
