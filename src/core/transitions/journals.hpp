#pragma once

#include <idem/journal.hpp>

#include <functional>
#include <string_view>

/// The steps of the journals' verbs, for stores whose own thread makes them over a table.
namespace idem {

/// Journals whose names begin so are never dropped.
inline constexpr std::string_view kept_journals = "audit";

/// Zeros: the journal has no line.
struct JournalEnd {
  std::uint64_t last = 0;
  std::uint64_t bytes = 0;
};

/// The storage of all journals. Used by one thread, within a transaction of the store.
class Journals {
 public:
  /// False: no more lines.
  using SeeLine = std::function<bool(JournalLine&&)>;

  virtual ~Journals() = default;
  virtual JournalEnd end_of(const std::string& journal) = 0;
  /// `bytes`: of all lines of the journal, with this one.
  virtual void append(const std::string& journal, const JournalLine& line, std::uint64_t bytes) = 0;
  /// Calls `see` with the lines behind `verb.after`, in order, until it returns false.
  virtual void read(const ReadLines& verb, const SeeLine& see) = 0;
  virtual std::vector<JournalSummary> list(const ListJournals& verb) = 0;
  virtual void drop(const std::string& journal) = 0;
};

AppendLine::Reply append_line(Journals& journals, AppendLine& verb, StoreTime now);
ReadLines::Reply read_lines(Journals& journals, const ReadLines& verb, StoreTime now);
DropJournal::Reply drop_journal(Journals& journals, const DropJournal& verb);

}  // namespace idem
