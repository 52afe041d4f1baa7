#pragma once

#include "store/log/database.hpp"

#include <cstdint>
#include <expected>
#include <functional>
#include <string>

namespace idem::segments {

/// Up to so many records a start makes lists anew by itself: that takes some seconds.
inline constexpr std::uint64_t records_reindexed_by_a_start = 2'000'000;

struct IndexRepair {
  /// All derived families, as `idem store reindex`; false: those that are damaged, as a start.
  bool is_ordered = false;
  std::function<void(std::uint64_t done, std::uint64_t all)> progress{};
};

/// Of a start, before the tables are made. Reads the parts of the index that are small, and of the
/// others no more than their beginnings and those that a process has found damaged; makes anew what
/// is damaged and derived. Nobody else has the store. Cut off, the next start begins it again.
///
/// Returns what was made anew. The error is a sentence: something is damaged that is nowhere else,
/// or a start would take too long.
std::expected<Families, std::string> repair_index(Database& db, RunningSection& running,
                                                  const IndexRepair& how);

/// What repair_index() would make anew; an error as there. For a look, too.
std::expected<Families, std::string> judge_index(Database& db);

/// The families whose values cannot be read to their end; of `families`.
Families unreadable_of(Database& db, const Families& families);

/// "its evidence cannot be read (PATH/index/000012.sst), ...": why a start refuses.
std::string not_derived(const Families& damaged, const std::string& file);

}  // namespace idem::segments
