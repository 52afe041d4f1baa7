#pragma once

#include "core/transitions/journals.hpp"
#include "store/sqlite/connection.hpp"

namespace idem::sqlite {

/// Of a line, also over its place.
std::int64_t checksum_of_line(std::string_view journal, std::uint64_t seq, std::int64_t at,
                              std::string_view line);

/// The table idem_journal. Each line has a checksum.
class JournalRows final : public Journals {
 public:
  explicit JournalRows(sqlite3* db);

  JournalEnd end_of(const std::string& journal) override;
  void append(const std::string& journal, const JournalLine& line, std::uint64_t bytes) override;
  void read(const ReadLines& verb, const SeeLine& see) override;
  std::vector<JournalSummary> list(const ListJournals& verb) override;
  void drop(const std::string& journal) override;

 private:
  sqlite3* db_;
  Statement end_;
  Statement append_;
  Statement read_;
  Statement first_name_;
  Statement next_name_;
  Statement drop_;
};

}  // namespace idem::sqlite
