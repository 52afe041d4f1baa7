#include "store/journal_copy.hpp"

#include "core/transitions/journals.hpp"

#include <idem/limits.hpp>
#include <idem/store_wait.hpp>

#include <algorithm>
#include <map>

namespace idem {
namespace {

using Kind = CopyError::Kind;

/// The number of the last line of each journal.
using JournalLengths = std::map<std::string, std::uint64_t>;

std::expected<JournalLengths, CopyError> journals_of(Store& store, const char* which) {
  JournalLengths all;
  std::string after;
  for (;;) {
    const auto page =
        ask_and_wait(store, ListJournals{.after = after, .limit = limits::journal_read_lines_max});
    if (!page) return copy_failed(which, page.error());
    for (const JournalSummary& one : *page) all[one.name] = one.last;
    if (page->size() < limits::journal_read_lines_max) return all;
    after = page->back().name;
  }
}

std::expected<std::vector<JournalLine>, CopyError> lines_of(Store& store, const char* which,
                                                            const std::string& journal,
                                                            std::uint64_t after) {
  auto read = ask_and_wait(
      store,
      ReadLines{.journal = journal, .after = after, .limit = limits::journal_read_lines_max});
  if (!read) return copy_failed(which, read.error());
  return std::move(read->lines);
}

using MayWrite = std::function<std::expected<void, CopyError>()>;

std::expected<void, CopyError> drop(Store& to, const std::string& journal, std::uint64_t last,
                                    const MayWrite& may_write) {
  if (journal.starts_with(kept_journals)) {
    return std::unexpected(CopyError{
        Kind::refused, "TO: its journal " + journal +
                           " is not that of FROM, and is never dropped: begin again with a store "
                           "that does not exist yet"});
  }
  if (auto may = may_write(); !may) return may;
  const auto dropped = ask_and_wait(to, DropJournal{journal, last});
  if (!dropped) return copy_failed("TO", dropped.error());
  return {};
}

/// One journal of the source.
class JournalCopy {
 public:
  JournalCopy(Store& from, Store& to, const std::string& journal, std::uint64_t target_last,
              const MayWrite& may_write)
      : from_(from), to_(to), journal_(journal), target_last_(target_last), may_write_(may_write) {}

  std::expected<CopiedLines, CopyError> run() {
    for (;;) {
      const auto theirs = lines_of(from_, "FROM", journal_, copied_.lines);
      if (!theirs) return std::unexpected(theirs.error());
      if (theirs->empty()) break;
      if (auto done = copy(*theirs); !done) return std::unexpected(std::move(done.error()));
    }
    return copied_;
  }

 private:
  std::expected<void, CopyError> copy(const std::vector<JournalLine>& theirs) {
    std::vector<JournalLine> ours;
    for (const JournalLine& line : theirs) {
      if (line.is_damaged) {
        return std::unexpected(CopyError{Kind::damaged, "FROM: line " + std::to_string(line.seq) +
                                                            " of the journal " + journal_ +
                                                            " is damaged"});
      }
      if (line.seq <= target_last_) {
        if (ours.empty() || ours.back().seq < line.seq) {
          auto read = lines_of(to_, "TO", journal_, line.seq - 1);
          if (!read) return std::unexpected(std::move(read.error()));
          ours = std::move(*read);
        }
        const auto same = std::ranges::find(ours, line.seq, &JournalLine::seq);
        if (same != ours.end() && *same == line) {
          ++copied_.lines;
          continue;
        }
        // It was dropped, and another one of its name has begun.
        if (auto dropped = drop(to_, journal_, target_last_, may_write_); !dropped) return dropped;
        target_last_ = 0;
        copied_ = {.lines = 0, .put = copied_.put + 1};
        return {};
      }
      if (auto put = append(line); !put) return put;
    }
    return {};
  }

  std::expected<void, CopyError> append(const JournalLine& line) {
    if (copied_.put == 0) {
      if (auto may = may_write_(); !may) return may;
    }
    const auto appended = ask_and_wait(
        to_,
        AppendLine{.journal = journal_, .behind = line.seq - 1, .line = line.bytes, .at = line.at});
    if (!appended) return copy_failed("TO", appended.error());
    if (!appended->appended) {
      return std::unexpected(CopyError{Kind::refused, "TO: another process writes to it"});
    }
    target_last_ = line.seq;
    ++copied_.lines;
    ++copied_.put;
    return {};
  }

  Store& from_;
  Store& to_;
  const std::string& journal_;
  std::uint64_t target_last_;
  const MayWrite& may_write_;
  CopiedLines copied_;
};

}  // namespace

std::expected<CopiedLines, CopyError> copy_journals(
    Store& from, Store& to, const std::function<std::expected<void, CopyError>()>& may_write) {
  const auto theirs = journals_of(from, "FROM");
  if (!theirs) return std::unexpected(theirs.error());
  const auto ours = journals_of(to, "TO");
  if (!ours) return std::unexpected(ours.error());
  CopiedLines all;
  for (const auto& [journal, last] : *ours) {
    const auto same = theirs->find(journal);
    if (same != theirs->end() && same->second >= last) continue;
    if (auto dropped = drop(to, journal, last, may_write); !dropped) {
      return std::unexpected(std::move(dropped.error()));
    }
    ++all.put;
  }
  for (const auto& [journal, last] : *theirs) {
    const auto has = ours->find(journal);
    const bool is_kept = has != ours->end() && has->second <= last;
    auto copied = JournalCopy(from, to, journal, is_kept ? has->second : 0, may_write).run();
    if (!copied) return std::unexpected(std::move(copied.error()));
    all.lines += copied->lines;
    all.put += copied->put;
  }
  return all;
}

}  // namespace idem
