#pragma once

#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// A table of records for people, oldest first.
class KeysTable {
 public:
  /// Adds a page of the admin API. Returns the cursor of the next one; empty: this is the last.
  /// None: the page is malformed.
  std::optional<std::string> add(const std::string& page);

  /// Prints all rows.
  void print();
  /// Prints the `rows_max` oldest and the number of the others. `is_part`: not all records were
  /// read.
  void print_oldest(std::size_t rows_max, bool is_part);

 private:
  struct Row {
    std::string created_at;
    std::vector<std::string> cells;
  };

  void sort();
  void print_rows_of(std::size_t count) const;

  std::vector<Row> rows_;
};

}  // namespace idem::cli
