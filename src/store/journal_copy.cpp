#include "store/journal_copy.hpp"

#include "core/transitions/journals.hpp"
#include "store/asked_at_once.hpp"

#include <idem/limits.hpp>
#include <idem/store_wait.hpp>

#include <algorithm>
#include <map>
#include <span>

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

/// Lines that are appended at once. Each is appended only after the one before it, so a store that
/// takes them in another order refuses some of them, which come again.
constexpr std::size_t appended_at_once = 256;

std::expected<void, CopyError> drop(Store& to, const std::string& journal, std::uint64_t last,
                                    const JournalWork& work) {
  if (journal.starts_with(kept_journals)) {
    return std::unexpected(CopyError{
        Kind::refused, "TO: its journal " + journal +
                           " is not that of FROM, and is never dropped: begin again with a store "
                           "that does not exist yet"});
  }
  if (auto may = work.may_write(); !may) return may;
  const auto dropped = ask_and_wait(to, DropJournal{journal, last});
  if (!dropped) return copy_failed("TO", dropped.error());
  return {};
}

/// One journal of the source.
class JournalCopy {
 public:
  /// `so_far`: of all journals before.
  JournalCopy(Store& from, Store& to, const std::string& journal, std::uint64_t target_last,
              const JournalWork& work, const CopiedLines& so_far)
      : from_(from),
        to_(to),
        journal_(journal),
        target_last_(target_last),
        work_(work),
        so_far_(so_far) {}

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
  std::expected<void, CopyError> copy(std::span<const JournalLine> theirs) {
    for (const JournalLine& line : theirs) {
      if (!line.is_damaged) continue;
      return std::unexpected(CopyError{Kind::damaged, "FROM: line " + std::to_string(line.seq) +
                                                          " of the journal " + journal_ +
                                                          " is damaged"});
    }
    const auto there = compare(theirs);
    if (!there) return std::unexpected(there.error());
    note(false);
    if (is_dropped_) {
      is_dropped_ = false;
      return {};
    }
    for (auto rest = theirs.subspan(*there); !rest.empty();) {
      const auto put = append(rest.first(std::min(rest.size(), appended_at_once)));
      if (!put) return std::unexpected(put.error());
      rest = rest.subspan(*put);
      note(true);
    }
    return {};
  }

  /// How many of them the target has. If it has another line, it loses all of the journal.
  std::expected<std::size_t, CopyError> compare(std::span<const JournalLine> theirs) {
    std::vector<JournalLine> ours;
    std::size_t alike = 0;
    for (const JournalLine& line : theirs) {
      if (line.seq > target_last_) break;
      if (ours.empty() || ours.back().seq < line.seq) {
        auto read = lines_of(to_, "TO", journal_, line.seq - 1);
        if (!read) return std::unexpected(std::move(read.error()));
        ours = std::move(*read);
      }
      const auto same = std::ranges::find(ours, line.seq, &JournalLine::seq);
      if (same != ours.end() && *same == line) {
        ++copied_.lines;
        ++alike;
        continue;
      }
      // It was dropped, and another one of its name has begun.
      if (auto dropped = drop(to_, journal_, target_last_, work_); !dropped) {
        return std::unexpected(std::move(dropped.error()));
      }
      target_last_ = 0;
      copied_ = {.lines = 0, .put = copied_.put + 1};
      is_dropped_ = true;
      break;
    }
    return alike;
  }

  /// How many of the first ones were appended: at least one.
  std::expected<std::size_t, CopyError> append(std::span<const JournalLine> lines) {
    if (copied_.put == 0) {
      if (auto may = work_.may_write(); !may) return std::unexpected(std::move(may.error()));
    }
    std::vector<AppendLine> verbs;
    for (const JournalLine& line : lines) {
      verbs.push_back(
          {.journal = journal_, .behind = line.seq - 1, .line = line.bytes, .at = line.at});
    }
    const auto replies = Asked<AppendLine>(to_, std::move(verbs)).wait();
    for (const auto& reply : replies) {
      if (!reply) return copy_failed("TO", reply.error());
    }
    std::size_t put = 0;
    for (; put < replies.size(); ++put) {
      const auto& reply = replies[put];
      if (reply->appended) continue;
      const bool is_others = put == 0 || reply->last >= lines[put].seq;
      if (!is_others) break;
      return std::unexpected(CopyError{Kind::refused, "TO: another process writes to it"});
    }
    target_last_ = lines[put - 1].seq;
    copied_.lines += put;
    copied_.put += put;
    return put;
  }

  void note(bool was_put) const {
    work_.see({so_far_.lines + copied_.lines, so_far_.put + copied_.put}, was_put);
  }

  Store& from_;
  Store& to_;
  const std::string& journal_;
  std::uint64_t target_last_;
  const JournalWork& work_;
  const CopiedLines& so_far_;
  CopiedLines copied_;
  bool is_dropped_ = false;
};

}  // namespace

std::expected<CopiedLines, CopyError> copy_journals(Store& from, Store& to,
                                                    const JournalWork& work) {
  const auto theirs = journals_of(from, "FROM");
  if (!theirs) return std::unexpected(theirs.error());
  const auto ours = journals_of(to, "TO");
  if (!ours) return std::unexpected(ours.error());
  CopiedLines all;
  for (const auto& [journal, last] : *ours) {
    const auto same = theirs->find(journal);
    if (same != theirs->end() && same->second >= last) continue;
    if (auto dropped = drop(to, journal, last, work); !dropped) {
      return std::unexpected(std::move(dropped.error()));
    }
    ++all.put;
  }
  for (const auto& [journal, last] : *theirs) {
    const auto has = ours->find(journal);
    const bool is_kept = has != ours->end() && has->second <= last;
    auto copied = JournalCopy(from, to, journal, is_kept ? has->second : 0, work, all).run();
    if (!copied) return std::unexpected(std::move(copied.error()));
    all.lines += copied->lines;
    all.put += copied->put;
  }
  return all;
}

}  // namespace idem
