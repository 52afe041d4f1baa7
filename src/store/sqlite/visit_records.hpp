#pragma once

#include "store/sqlite/connection.hpp"

#include <idem/record.hpp>

#include <functional>

namespace idem::sqlite {

/// Shows every record of the file, running or not, without id, answer and request; null stands for
/// one that cannot be read. Until the end or until `see` answers false.
void visit_records(sqlite3* db, const std::function<bool(const Record*)>& see);

}  // namespace idem::sqlite
