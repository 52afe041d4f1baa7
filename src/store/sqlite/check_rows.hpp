#pragma once

#include "store/store_file.hpp"

#include <string>

struct sqlite3;

namespace idem::sqlite {

/// Collects what is wrong in a report, up to findings_max.
class Findings {
 public:
  explicit Findings(StoreFileReport& report) : report_(report) {}

  void add(std::string where, std::string what, std::string todo);

  Fence highest_fence = 0;  ///< Of the records that can be read.

 private:
  StoreFileReport& report_;
};

/// Reads each row of the store's tables. A row that cannot be read is a finding with its record's
/// ref; a table that cannot be read to its end is one, too.
void check_rows(sqlite3* db, StoreFileReport& report, Findings& findings,
                const StoreFileProgress& progress);

}  // namespace idem::sqlite
