#pragma once

#include "store/mysql/sql_text.hpp"

#include <idem/record.hpp>

#include <span>
#include <string>

namespace idem::mysql {

/// A text of statements, and their number.
struct Statements {
  std::string text;
  std::size_t count = 0;

  SqlText next(std::string_view start) {
    if (count++ > 0) text += ";\n";
    return std::move(SqlText(text).sql(start));
  }
  /// By a join, row by row: MariaDB may scan a small table for DELETE .. WHERE id IN, whatever
  /// index is forced, and would then wait for rows that an application's transaction has.
  void erase(std::string_view table, std::span<const RecordId> ids) {
    if (ids.empty()) return;
    auto sql = next("DELETE t FROM (");
    for (const RecordId& id : ids) {
      sql.sql(&id == ids.data() ? "SELECT " : " UNION ALL SELECT ").hex(id.bytes).sql(" AS id");
    }
    sql.sql(") k STRAIGHT_JOIN ").sql(table).sql(" t FORCE INDEX (PRIMARY) ON t.id = k.id");
  }
};

}  // namespace idem::mysql
