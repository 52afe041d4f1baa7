#pragma once

#include "admin/job_orders.hpp"
#include "loop/offload.hpp"

#include <idem/store.hpp>

namespace idem::admin {

struct Matched {
  std::vector<JobTarget> targets;
  /// False: there are more than a job may have, or the search was given up.
  bool is_whole = true;
};

/// Finds the records or messages that an order can be about, with their fences: of `keys.resolve`
/// those with an attempt, of `keys.release` those with a stored 5xx. Loop's thread only; all
/// references outlive the task.
Task<std::expected<Matched, StoreError>> find_targets(Loop& loop, Store& store, Offload& offload,
                                                      JobSearch search);

}  // namespace idem::admin
