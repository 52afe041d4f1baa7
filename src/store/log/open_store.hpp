#pragma once

#include "core/naming/naming.hpp"
#include "store/log/database.hpp"
#include "store/log/log_store.hpp"
#include "store/log/running_section.hpp"
#include "store/log/slots.hpp"

namespace idem::segments {

struct OpenedStoreParts {
  std::unique_ptr<Database> db;
  std::unique_ptr<RunningSection> running;
  std::unique_ptr<SlotTable> slots;
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
