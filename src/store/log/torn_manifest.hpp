#pragma once

#include <optional>
#include <string>
#include <utility>

namespace idem::segments {

/// RocksDB's list of its files, the manifest, when the power failed while it was written: RocksDB
/// refuses one that ends in half a record. What is lost with that record is in the log.
///
/// Source of its format: RocksDB's wiki, "Write Ahead Log File Format".

/// Its list of files begins once more after its end, which RocksDB takes for a fault of its own and
/// aborts. end_torn_manifest() ends it there.
bool has_a_list_twice(const std::string& index);

/// Ends the list of the index in the folder `index` after its last whole record: once a look at a
/// MendedIndex has found that nothing is missing then. False: the list is as it was; see errno.
[[nodiscard]] bool end_torn_manifest(const std::string& index);

/// The index as end_torn_manifest() would leave it, for a look, which changes nothing: a folder of
/// links to its files beside the shortened list, among the temporary files or beside the index.
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

/// What a killed process left of such folders in the store `path`.
void remove_mended_copies(const std::string& path);

}  // namespace idem::segments
