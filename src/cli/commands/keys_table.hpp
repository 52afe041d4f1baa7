#pragma once

#include <optional>
#include <string>
#include <vector>

namespace idem::cli {

/// Records as a table for people, the oldest first.
class KeysTable {
 public:
  /// A page of the admin API. Where the next one begins; empty: there is none. None: it is no such
  /// page.
  std::optional<std::string> add(const std::string& page);

  /// All of them.
  void print();
  /// So many of the oldest, and how many there are besides. `is_part`: not all records were read.
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
