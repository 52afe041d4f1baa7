#pragma once

#include "core/naming/naming.hpp"
#include "core/transitions/record_table.hpp"
#include "store/embedded/in_common.hpp"
#include "store/log/database.hpp"
#include "store/log/log_store.hpp"

#include <memory>
#include <vector>

namespace idem::segments {

/// One shard, open.
struct OpenedShard {
  std::unique_ptr<Database> db;
  std::unique_ptr<RecordTable> table;  ///< Of `db`, and of what was running.
  Fence noted_fence = 0;

  /// It has neither a record, nor evidence, nor a journal.
  bool is_empty();
};

struct OpenedStoreParts {
  std::shared_ptr<embedded::InCommon> in_common;
  std::vector<OpenedShard> shards;
  Identity identity;
  Naming naming;
  StoreClock clock;
  Fence highest_fence = 0;  ///< No fence above it was ever granted.
  /// The last process did not close the store. It is dead, as the lock was free.
  bool was_cut_off = false;
  bool is_restored = false;  ///< As LogOptions::restored.
};

/// Does what open_log() promises about the directory.
std::expected<OpenedStoreParts, StoreError> open_store(const std::string& path,
                                                       const IdentitySettings& settings,
                                                       const LogOptions& options);

}  // namespace idem::segments
