#pragma once

#include <idem/record.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// @file
/// Journals: append-only lists of lines by name, in the store beside the records. The store does
/// not read the lines; the audit trail is one of them.
namespace idem::inline v0_1 {

/// Appends a line if `behind` is the number of the journal's last line; the line then has the next
/// number. So of several appenders that have read the same end one succeeds. Durable before the
/// reply. A lost reply is `in_doubt`: read what lies there, and do not ask again blindly.
struct AppendLine {
  /// Whether it was appended.
  struct Reply {
    bool appended = false;
    std::uint64_t last = 0;  ///< The number of the journal's last line, after this call.
    StoreTime now{};         ///< Of an appended line: its moment.
    bool operator==(const Reply&) const = default;
  };
  /// 1 to `limits::journal_name_bytes_max` printable ASCII characters, no space and no backslash.
  std::string journal;
  std::uint64_t behind = 0;  ///< 0: the journal has no line yet.
  /// Any bytes, up to `limits::journal_line_bytes_max`; encryption takes 77 of them.
  std::string line;
  /// Of a line from another store: its moment there. None: now.
  std::optional<StoreTime> at{};
};

/// One line as it was appended.
struct JournalLine {
  std::uint64_t seq = 0;  ///< 1, 2, 3 and so on: lines are never removed one by one.
  StoreTime at{};         ///< The store's time of the append.
  std::string bytes;
  /// The stored line differs from its checksum, or does not open: `bytes` is what lies there.
  /// Nothing may be decided by it.
  bool is_damaged = false;
  std::string why{};  ///< Why it does not open; empty: its checksum differs, or it is sound.
  bool operator==(const JournalLine&) const = default;
};

/// Reads lines in order, those behind `after`. A reply has `limit` and
/// `limits::journal_read_lines_max` lines at most, and stops once it has
/// `limits::journal_read_bytes_max` bytes; it has at least one line if there is one.
struct ReadLines {
  /// The lines, and the journal's end.
  struct Reply {
    std::vector<JournalLine> lines;
    std::uint64_t last = 0;  ///< The number of the journal's last line; 0: it has none.
    StoreTime now{};
    bool operator==(const Reply&) const = default;
  };
  std::string journal;
  std::uint64_t after = 0;
  std::size_t limit = 100;
};

/// What a listing shows of a journal.
struct JournalSummary {
  std::string name;
  std::uint64_t last = 0;   ///< The number of its last line.
  std::uint64_t bytes = 0;  ///< Of all its lines.
  bool operator==(const JournalSummary&) const = default;
};

/// Reads the names of journals that begin with `prefix`, in the order of their bytes, those behind
/// `after`; `limit` and `limits::journal_read_lines_max` at most.
struct ListJournals {
  using Reply = std::vector<JournalSummary>;
  std::string prefix{};
  std::string after{};
  std::size_t limit = 100;
};

/// Removes a journal with all its lines if `last` is the number of its last line. Nothing remains:
/// a journal of this name that begins later has the numbers from 1 on, too, so its users must tell
/// the two apart. A journal whose name begins with "audit" is never dropped: `refused`.
struct DropJournal {
  /// Whether it is gone.
  struct Reply {
    bool dropped = false;    ///< Also true if there was none, and `last` is 0.
    std::uint64_t last = 0;  ///< The number of the journal's last line, after this call.
    bool operator==(const Reply&) const = default;
  };
  std::string journal;
  std::uint64_t last = 0;
};

}  // namespace idem::inline v0_1
