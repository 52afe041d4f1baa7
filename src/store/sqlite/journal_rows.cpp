#include "store/sqlite/journal_rows.hpp"

#include "core/bytes/checksum.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <bit>

namespace idem::sqlite {

std::int64_t checksum_of_line(std::string_view journal, std::uint64_t seq, std::int64_t at,
                              std::string_view line) {
  const std::string place = std::to_string(journal.size()) + ":" + std::string(journal) + ":" +
                            std::to_string(seq) + ":" + std::to_string(at);
  return std::bit_cast<std::int64_t>(checksum_of(RecordId{}, place, line));
}

JournalRows::JournalRows(sqlite3* db)
    : db_(db),
      end_(db, "SELECT seq, total FROM idem_journal WHERE name = ?1 ORDER BY seq DESC LIMIT 1"),
      append_(db,
              "INSERT INTO idem_journal (name, seq, at, line, total, checksum)"
              " VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
      read_(db,
            "SELECT seq, at, line, checksum FROM idem_journal WHERE name = ?1 AND seq > ?2"
            " ORDER BY seq"),
      first_name_(db, "SELECT name FROM idem_journal WHERE name >= ?1 ORDER BY name LIMIT 1"),
      next_name_(db, "SELECT name FROM idem_journal WHERE name > ?1 ORDER BY name LIMIT 1"),
      drop_(db, "DELETE FROM idem_journal WHERE name = ?1") {}

JournalEnd JournalRows::end_of(const std::string& journal) {
  end_.bind_text(1, journal);
  if (!end_.step()) return {};
  const RowsEnd rows(end_);
  return {static_cast<std::uint64_t>(end_.integer(0)), static_cast<std::uint64_t>(end_.integer(1))};
}

void JournalRows::append(const std::string& journal, const JournalLine& line, std::uint64_t bytes) {
  const std::int64_t at = line.at.time_since_epoch().count();
  append_.bind_text(1, journal);
  append_.bind(2, static_cast<std::int64_t>(line.seq));
  append_.bind(3, at);
  append_.bind_blob(4, line.bytes);
  append_.bind(5, static_cast<std::int64_t>(bytes));
  append_.bind(6, checksum_of_line(journal, line.seq, at, line.bytes));
  append_.run();
}

void JournalRows::read(const ReadLines& verb, const SeeLine& see) {
  read_.bind_text(1, verb.journal);
  read_.bind(2, static_cast<std::int64_t>(verb.after));
  while (read_.step()) {
    const auto seq = static_cast<std::uint64_t>(read_.integer(0));
    const std::int64_t at = read_.integer(1);
    JournalLine line{seq, StoreTime(Millis(at)), std::string(read_.bytes(2))};
    line.is_damaged = read_.integer(3) != checksum_of_line(verb.journal, seq, at, line.bytes);
    if (!see(std::move(line))) return read_.reset();
  }
}

// From name to name, so that it reads one row of each journal and not all of their lines.
std::vector<JournalSummary> JournalRows::list(const ListJournals& verb) {
  std::vector<JournalSummary> found;
  const std::size_t most = std::min(verb.limit, limits::journal_read_lines_max);
  std::string from = std::max(verb.prefix, verb.after);
  Statement* next = verb.after >= verb.prefix && !verb.after.empty() ? &next_name_ : &first_name_;
  while (found.size() < most) {
    next->bind_text(1, from);
    if (!next->step()) break;
    std::string name(next->bytes(0));
    next->reset();
    if (!name.starts_with(verb.prefix)) break;
    const JournalEnd end = end_of(name);
    from = name;
    found.push_back({std::move(name), end.last, end.bytes});
    next = &next_name_;
  }
  return found;
}

// Its bytes are overwritten: they may be a key.
void JournalRows::drop(const std::string& journal) {
  sqlite3_exec(db_, "PRAGMA secure_delete=ON", nullptr, nullptr, nullptr);
  drop_.bind_text(1, journal);
  drop_.run();
}

}  // namespace idem::sqlite
