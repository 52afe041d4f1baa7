#pragma once

#include "store/sqlite/connection.hpp"

#include <idem/store.hpp>

#include <functional>
#include <string>
#include <vector>

/// Reads the rows of a database that may be damaged, past pages that cannot be read.
namespace idem::sqlite {

/// Shows each record whose checksum holds, with its answer or its request; without them, if theirs
/// does not, as lose_bytes() leaves it. False: some rows cannot be read.
bool each_found_record(sqlite3* db, const std::function<bool(Record&&)>& see);
/// Those of them alone that have lost their answer or their request.
bool each_lossy_record(sqlite3* db, const std::function<bool(Record&&)>& see);

/// The lines of evidence about a record that can be read, in their order.
std::vector<EvidenceEntry> found_evidence(sqlite3* db, const RecordId& id);

/// Copies the rows of a table that can be read to the same table elsewhere, past those that it has.
/// False: some cannot be read.
bool copy_rows(sqlite3* from, sqlite3* to, const std::string& table);

}  // namespace idem::sqlite
