#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace idem::segments {

/// RocksDB's list of its files, the manifest, when the power failed while it was written: RocksDB
/// refuses one that ends in half a record. What is lost with that record is in the log.
///
/// Source of its format: RocksDB's wiki, "Write Ahead Log File Format".

/// Its list of files begins once more after its end, which RocksDB takes for a fault of its own and
/// aborts. mend_torn_manifest() ends it there.
bool has_a_list_twice(const std::string& index);

/// Ends the list of the index in the folder `index` behind its last whole record, if `is_whole`
/// finds then that nothing is missing. False: the list is as it was.
[[nodiscard]] bool mend_torn_manifest(const std::string& index,
                                      const std::function<bool()>& is_whole);

/// The index as mend_torn_manifest() would leave it, for a look, which changes nothing: a temporary
/// folder of links to its files beside the shortened list.
class MendedIndex {
 public:
  /// None: its list is not torn, or the folder cannot be made.
  static std::optional<MendedIndex> of(const std::string& index);
  MendedIndex(MendedIndex&& other) noexcept : folder_(std::exchange(other.folder_, {})) {}
  MendedIndex& operator=(MendedIndex&&) = delete;
  ~MendedIndex();

  const std::string& folder() const noexcept { return folder_; }

 private:
  explicit MendedIndex(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

/// In front of each start: brings back the list of a mending that was cut off before `is_whole`
/// answered, because RocksDB deletes files that a list does not name. False: it cannot be read or
/// written.
[[nodiscard]] bool undo_unfinished_mending(const std::string& index);

}  // namespace idem::segments
