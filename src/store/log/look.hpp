#pragma once

#include "store/log/database.hpp"
#include "store/log/shard_facts.hpp"
#include "store/store_file.hpp"

#include <expected>
#include <memory>
#include <string>
#include <vector>

namespace idem::segments {

/// A shard as of one of its last commits, to be read.
struct Look {
  std::unique_ptr<RunningSection> running;
  std::unique_ptr<Database> db;
  ShardFacts facts;
};

struct StoreLook {
  Layout layout;
  std::vector<Look> shards;  ///< All folders of the layout.
  StoreTime taken_at{};      ///< All that was durable then is in it.
};

/// Of a store whose records a start was moving to other shards when it was cut off. A record may be
/// in a shard that is not its own, or in several.
enum class CutOffMove : std::uint8_t { refused, shown };

/// A recovery keeps what is left of a store that no start opens: it judges the index itself, and
/// goes without missing files of versions and folders that the store does not count among its own.
enum class LookFor : std::uint8_t { start, recovery };

/// Beside a process that has it open or not; changes nothing. Refuses a damaged store for the same
/// reasons as a start. The first shard is seen last: a decision is noted there before it is made.
/// While a start moves records, it is refused.
std::expected<StoreLook, StoreFileError> look_at_store(const std::string& path,
                                                       CutOffMove cut_off = CutOffMove::refused,
                                                       LookFor purpose = LookFor::start);

/// As StoreFileKind::look. A start reads no more than this reads at any depth.
std::expected<StoreFileReport, StoreFileError> identify_store(const std::string& path,
                                                              const IdentitySettings& settings,
                                                              LookDepth depth);

/// Of all files below `path`.
std::uint64_t bytes_below(const std::string& path);

/// What is at `path`, if that is no store of this kind.
std::optional<StoreFileError> why_no_store(const std::string& path);

}  // namespace idem::segments
