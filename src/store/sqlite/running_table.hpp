#pragma once

#include "store/embedded/running_cells.hpp"
#include "store/sqlite/connection.hpp"

#include <idem/record.hpp>

#include <queue>
#include <vector>

namespace idem::sqlite {

/// The table idem_running. A freed cell is used again, one of the same transaction first and then
/// the lowest, so that the same few pages are written.
class RunningTable final : public embedded::RunningCells {
 public:
  /// The id in a row; none: it is damaged.
  static std::optional<RecordId> id_in(std::string_view bytes);

  explicit RunningTable(sqlite3* db);

  void read(const See& see) override;
  std::int64_t insert(const Record& record, std::int64_t place) override;
  void update(std::int64_t cell, const Record& record, std::int64_t place) override;
  void erase(std::int64_t cell) override;
  void flush() override;

 private:
  void write(Statement& statement, std::int64_t cell, const Record& record, std::int64_t place);

  sqlite3* db_;
  Statement insert_;
  Statement overwrite_;  ///< No UPDATE, which would succeed silently without the row.
  Statement erase_;
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free_;
  std::vector<std::int64_t> erased_;  ///< Erased cells whose rows are still there.
  std::int64_t last_cell_ = 0;
  std::string record_bytes_;
  std::string id_bytes_;
};

}  // namespace idem::sqlite
