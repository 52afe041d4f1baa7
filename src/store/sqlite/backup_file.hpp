#pragma once

#include "store/store_file.hpp"

struct sqlite3;

namespace idem::sqlite {

/// As StoreFileKind::backup.
std::expected<StoreFileReport, StoreFileError> backup_file(const std::string& path,
                                                           const std::string& to,
                                                           const StoreFileProgress& progress);

/// Copies every page of `source` to a new file, of mode 0600, and makes it durable. `copied_at`, if
/// any, is noted in it. The file may stay after an error.
std::expected<void, StoreFileError> copy_pages(sqlite3* source, const std::string& to,
                                               std::optional<StoreTime> copied_at,
                                               const StoreFileProgress& progress);

/// In a store that nobody has open.
std::expected<void, StoreFileError> note_copied_at_in(const std::string& path, StoreTime copied_at);

/// Makes names in the folder of `path` durable.
std::expected<void, StoreFileError> sync_folder(const std::string& path);

/// Deletes a file at the end, unless it was let go.
class Leftover {
 public:
  explicit Leftover(std::string path) : path_(std::move(path)) {}
  ~Leftover();
  Leftover(const Leftover&) = delete;
  Leftover& operator=(const Leftover&) = delete;
  void let_go() { path_.clear(); }

 private:
  std::string path_;
};

}  // namespace idem::sqlite
