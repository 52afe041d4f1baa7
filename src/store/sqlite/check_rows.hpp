#pragma once

#include "store/file_findings.hpp"

struct sqlite3;

namespace idem::sqlite {

/// Reads each row of the store's tables. A row that cannot be read is a finding with its record's
/// ref; a table that cannot be read to its end is one, too.
void check_rows(sqlite3* db, StoreFileReport& report, FileFindings& findings,
                const StoreFileProgress& progress);

}  // namespace idem::sqlite
