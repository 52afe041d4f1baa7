#pragma once

#include "store/embedded/running_cells.hpp"
#include "store/embedded/slot_table.hpp"

#include <memory>

namespace idem::embedded {

/// Keeps the running records (in_progress) in memory beside their rows, and answers for them
/// without asking the medium: the store's owner is the only writer, so memory and medium agree. A
/// reserve then writes one small row without an index entry, and the settling step deletes that row
/// and puts the record into `slots`, in one transaction. Reads all running rows once, here.
///
/// A row that cannot be read blocks its key, and so does one whose id or number is found twice: it
/// is unknown which of the two is true.
std::unique_ptr<RecordTable> keep_running_rows(std::unique_ptr<RunningCells> cells,
                                               std::unique_ptr<SlotTable> slots);

}  // namespace idem::embedded
