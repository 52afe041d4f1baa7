#pragma once

#include "core/naming/naming.hpp"
#include "store/embedded/id_index.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/open_file.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace idem::sqlite {

/// "IDEM" in the file's header: the database is Idem's.
inline constexpr std::int64_t application_id = 0x4944454d;
/// "Idem": in files from before the first release, whose tables had other numbers.
inline constexpr std::int64_t application_id_before_release = 0x4964656d;

struct OpenedDatabase {
  Connection connection;
  Identity identity;
  Naming naming;
  StoreClock clock;
  embedded::IdIndex index;  ///< Has every row of idem_slots.
  Fence highest_fence = 0;  ///< No fence above it was ever granted.
  OpenFile file;
  /// The last process did not close the file. It is dead, as the lock was free.
  bool was_cut_off = false;
  bool is_restored = false;  ///< As SqliteOptions::restored.
};

/// Why the disk lacks the room that a start needs, also to end the attempts that a killed process
/// left in `db`; null: they are not known yet. None: it has room.
std::optional<std::string> why_no_room_to_start(const std::string& path, sqlite3* db);

/// Does what open_sqlite() promises about the file: afterwards it is locked, whole, of the current
/// schema, and its meta table is filled.
std::expected<OpenedDatabase, StoreError> open_database(const std::string& path,
                                                        const IdentitySettings& settings,
                                                        const SqliteOptions& options);

/// The same on a connection that the caller opened and set up (<idem/sqlite.hpp>). After an error
/// it stays the caller's, unchanged.
std::expected<OpenedDatabase, StoreError> open_database_on(sqlite3* db,
                                                           const IdentitySettings& settings,
                                                           const SqliteOptions& options);

}  // namespace idem::sqlite
