#pragma once

#include "store/embedded/in_common.hpp"
#include "store/embedded/slot_table.hpp"
#include "store/log/meta.hpp"

#include <memory>

namespace idem::segments {

using embedded::SlotTable;
using embedded::unreadable;

/// A settled record is written once for each of its versions, each at a place of its own: places
/// grow, so the files of records are written in order and dropped in order. `ids` says which place
/// is a record's present one. Its counts, and the last place, are a value of `meta` that each
/// transaction writes; `counts` is that value.
std::unique_ptr<SlotTable> make_slot_table(Database& db, const Counts& counts,
                                           embedded::InCommon* in_common);

}  // namespace idem::segments
