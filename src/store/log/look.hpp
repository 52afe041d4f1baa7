#pragma once

#include "store/log/database.hpp"
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
};

struct StoreLook {
  std::vector<Look> shards;
  StoreTime taken_at{};  ///< All that was durable then is in it.
};

/// Beside a process that has it open or not; changes nothing. The first shard is seen last: a
/// decision is noted there before it is made.
std::expected<StoreLook, StoreFileError> look_at_store(const std::string& path);

/// As StoreFileKind::look.
std::expected<StoreFileReport, StoreFileError> identify_store(const std::string& path,
                                                              const IdentitySettings& settings);

/// Of all files below `path`.
std::uint64_t bytes_below(const std::string& path);

/// What is at `path`, if that is no store of this kind.
std::optional<StoreFileError> why_no_store(const std::string& path);

}  // namespace idem::segments
