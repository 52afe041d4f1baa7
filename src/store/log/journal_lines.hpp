#pragma once

#include "core/transitions/journals.hpp"
#include "store/log/database.hpp"

#include <functional>

namespace idem::segments {

/// The family `journals`: a journal's name, a zero and the line's number name a line. Each has a
/// checksum, also over its name.
class JournalLines final : public Journals {
 public:
  explicit JournalLines(Database& db) : db_(db) {}

  /// Shows the lines of all journals; `bytes`: of the journal, with this line.
  static void each(Database& db,
                   const std::function<void(const std::string& journal, const JournalLine&,
                                            std::uint64_t bytes)>& see);

  JournalEnd end_of(const std::string& journal) override;
  void append(const std::string& journal, const JournalLine& line, std::uint64_t bytes) override;
  void read(const ReadLines& verb, const SeeLine& see) override;
  std::vector<JournalSummary> list(const ListJournals& verb) override;
  void drop(const std::string& journal) override;

 private:
  Database& db_;
};

}  // namespace idem::segments
