#pragma once

#include "core/transitions/snapshot_table.hpp"

namespace idem {

/// The reply of a store, and what it would write.
struct Foreseen {
  StoreResult result;
  RecordWrite write;
};

/// What a store would reply to `call`, a reserve or an accept, if it held the records of `table`
/// alone: by the steps of the stores themselves, over copies. `table` has an entry for each name of
/// the call. Writes nothing. Quotas count as unused, and the store's generation as the call's.
Foreseen foresee(const StoreCall& call, SnapshotTable& table, StoreTime now);

}  // namespace idem
