#pragma once

#include "store/sqlite/connection.hpp"
#include "store/store_file.hpp"

namespace idem::sqlite {

/// The value of idem_meta that a backup has: when it was taken, in milliseconds since the epoch.
inline constexpr std::string_view copied_at_name = "copied_at_ms";
/// Of a copy: all that was durable then is in it. None: it is no copy, or that cannot be read.
std::optional<StoreTime> copied_at_in(sqlite3* db);

/// As StoreFileKind::check.
std::expected<StoreFileReport, StoreFileError> check_file(const std::string& path,
                                                          const StoreFileProgress& progress);

/// As StoreFileKind::look.
std::expected<StoreFileReport, StoreFileError> look_at_file(const std::string& path,
                                                            const IdentitySettings& settings,
                                                            LookDepth depth);

/// Checks an open database, whose file must not change meanwhile: its structure (SQLite's
/// integrity_check), and each record, answer, request, line of evidence and line of a journal.
/// The error: it is no store, or one of another schema.
std::expected<StoreFileReport, StoreFileError> check_database(sqlite3* db, const std::string& path,
                                                              const StoreFileProgress& progress);

/// Without symbolic links, because the log lies beside the file itself.
std::string real_path(const std::string& path);
/// The same of a file that is only read; of a link to nothing the link, so that it is named.
std::string path_to_read(const std::string& path);

}  // namespace idem::sqlite
