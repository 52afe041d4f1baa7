#pragma once

#include "core/transitions/record_table.hpp"

namespace idem {

struct StepContext {
  RecordTable& table;
  transitions::FenceCounter& fences;
  Tally& tally;
  StoreTime now;
  Naming& naming;
};

/// Does one call against the table, whole or not at all: looks up, makes the transition, writes
/// back. What it answers may be told once the table's writes and the fence counter are durable.
StoreResult do_step(StoreCall& call, const StepContext& context);

/// Ends the running attempts of a process that is known to be dead, as far as transitions say so.
/// Each has a line in the evidence log.
std::vector<LifecycleStep> end_cut_off_attempts(const StepContext& context);

}  // namespace idem
