#pragma once

#include "store/log/meta.hpp"
#include "store/log/shards.hpp"

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

namespace idem::segments {

/// What an opened shard says of itself.
struct ShardFacts {
  std::optional<StoreIdentity> identity;
  std::optional<ClockMark> mark;
  std::optional<std::uint64_t> number;  ///< Of which shard it is, if it is not the first.
  Layout layout{};
  StartMark start{};
  std::optional<std::uint64_t> copied_at;  ///< Of a backup.
  Fence noted_fence = 0;
  Counts counts;
  bool was_open = false;
  bool is_empty = false;  ///< It has neither a record, nor evidence, nor a journal.
};

/// The one judgement about an opened shard, of starts, checks and looks. The error, a sentence with
/// the path: it lacks something without which no key would be safe. Reads nothing that a start
/// makes anew (judge_index() in index_repair.hpp judges that).
std::expected<ShardFacts, std::string> read_facts(Database& db, const RunningSection& running);

/// Likewise, once it is known that `segments` need not be made anew: a file of versions is missing.
/// A start would make it anew, and answer 503 to each key of it: bringing the file back is better.
/// One without present versions may have been deleted. Empty: all are there.
std::string why_files_lack(Database& db);

/// Likewise about a shard beside the first one. Empty: they are of one store, and the same process
/// wrote them.
std::string why_not_beside(const ShardFacts& first, std::uint32_t shard, const ShardFacts& other,
                           const std::string& store);

/// Likewise about a folder that the store does not count among its own.
std::string why_not_a_leftover(const ShardFacts& found, std::uint32_t shard,
                               const std::string& store);

/// It has neither evidence nor a journal; what cannot be read counts as one.
bool has_no_lines(Database& db);

}  // namespace idem::segments
