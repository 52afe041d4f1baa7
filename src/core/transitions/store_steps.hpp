#pragma once

#include "core/transitions/record_table.hpp"

#include <span>

namespace idem {

struct StepContext {
  RecordTable& table;
  transitions::FenceCounter& fences;
  Tally& tally;
  StoreTime now;
  Naming& naming;
};

/// Executes one call on the table, whole or not at all: looks up, makes the transition, writes
/// back. The caller may pass the result on once the table's writes and the fence counter are
/// durable.
StoreResult do_step(StoreCall& call, const StepContext& context);

/// As AdoptRoutes on a store with all of these tables: each of them saves the new naming, or none
/// does. The tables' threads do nothing else meanwhile.
AdoptRoutes::Reply adopt_routes(AdoptRoutes& verb, std::span<const StepContext* const> contexts);

/// Ends the running attempts of a process that is known to be dead, as transitions::end_cut_off()
/// allows. Writes an entry to the evidence log for each.
std::vector<LifecycleStep> end_cut_off_attempts(const StepContext& context);

/// Makes every record unknown that is not settled, as transitions::end_restored() does. Writes an
/// entry to the evidence log for each.
void end_restored_records(const StepContext& context);

}  // namespace idem
