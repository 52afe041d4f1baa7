#pragma once

#include <functional>
#include <string>

namespace idem::segments {

/// RocksDB's list of its files, the manifest, when the power failed while it was written: RocksDB
/// refuses one that ends in half a record. What is lost with that record is in the log.
///
/// Source of its format: RocksDB's wiki, "Write Ahead Log File Format".

/// Ends the list of the index in the folder `index` behind its last whole record, if `is_whole`
/// finds then that nothing is missing. False: the list is as it was.
[[nodiscard]] bool mend_torn_manifest(const std::string& index,
                                      const std::function<bool()>& is_whole);

/// In front of each start: brings back the list of a mending that was cut off before `is_whole`
/// answered, because RocksDB deletes files that a list does not name. False: it cannot be read or
/// written.
[[nodiscard]] bool undo_unfinished_mending(const std::string& index);

}  // namespace idem::segments
