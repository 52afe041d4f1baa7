#pragma once

#include "metrics/shard.hpp"

#include <idem/store.hpp>

#include <expected>

namespace idem::workers {

/// Drops up to `most` journals of the search (core/record/find_journals.hpp) whose day is over. A
/// record that is still there moves to the day on which it is forgotten, first: one that stays
/// unknown for longer, or was kept for longer than its journal. True: there may be more. Several
/// processes may do this at the same time. Error: the store did not answer.
std::expected<bool, StoreError> forget_once(Store& store, metrics::Shard& shard, std::size_t most);

}  // namespace idem::workers
