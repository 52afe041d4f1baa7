#pragma once

#include "core/naming/naming.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/id_index.hpp"
#include "store/sqlite/open_file.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace idem::sqlite {

/// "IDEM" in the file's header: whose database it is.
inline constexpr std::int64_t application_id = 0x4944454d;
/// "Idem": of files whose tables were numbered otherwise.
inline constexpr std::int64_t application_id_before_release = 0x4964656d;

struct OpenedDatabase {
  Connection connection;
  Identity identity;
  Naming naming;
  StoreClock clock;
  IdIndex index;  ///< Every row of slots.
  OpenFile file;
  /// The process that had it open last has not closed it: it is dead, as the lock was to be had.
  bool was_cut_off = false;
};

/// All that open_sqlite() promises about the file; from here on it is locked, whole, of the current
/// schema, and its meta table is filled.
std::expected<OpenedDatabase, StoreError> open_database(const std::string& path,
                                                        const IdentitySettings& settings,
                                                        const SqliteOptions& options);

/// The same on a connection that was opened and set up elsewhere (<idem/sqlite.hpp>). After an
/// error it is still the caller's, as it was.
std::expected<OpenedDatabase, StoreError> open_database_on(sqlite3* db,
                                                           const IdentitySettings& settings,
                                                           const SqliteOptions& options);

}  // namespace idem::sqlite
