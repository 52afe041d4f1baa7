#pragma once

#include "store/embedded/id_index.hpp"
#include "store/sqlite/connection.hpp"

#include <expected>
#include <string>

namespace idem::sqlite {

struct AllRecords {
  embedded::IdIndex index;  ///< Has every row of idem_slots.
  Fence highest_fence = 0;  ///< Of all records that can be read.
};

/// What a start learns from all rows. The error: a row has lost its id, so its key is unknown and
/// no key would be safe to run; or SQLite cannot read them all. The file has each id twice, in its
/// row and in an index; a damaged copy differs from the other.
std::expected<AllRecords, std::string> read_all_records(sqlite3* db);

}  // namespace idem::sqlite
