#include "store/sqlite/check_rows.hpp"

#include "core/bytes/checksum.hpp"
#include "core/record/stored_fence.hpp"
#include "core/record/stored_record_codec.hpp"
#include "core/record/stored_response_codec.hpp"
#include "core/transitions/transitions.hpp"
#include "store/sqlite/evidence_log.hpp"
#include "store/sqlite/journal_rows.hpp"
#include "store/sqlite/running_table.hpp"
#include "store/sqlite/tolerant_rows.hpp"

#include <algorithm>
#include <vector>

namespace idem::sqlite {
namespace {

constexpr std::uint64_t rows_between_progress = 4'096;

std::optional<RecordId> id_in(std::string_view bytes) {
  RecordId id;
  if (bytes.size() != id.bytes.size()) return std::nullopt;
  bytes.copy(reinterpret_cast<char*>(id.bytes.data()), id.bytes.size());
  return id;
}

class Rows {
 public:
  Rows(sqlite3* db, StoreFileReport& report, FileFindings& findings,
       const StoreFileProgress& progress)
      : db_(db), report_(report), findings_(findings), progress_(progress) {}

  void check() {
    if (progress_) count_rows();
    running();
    settled();
    same_ids();
    requests();
    evidence();
    journals();
    if (progress_) progress_(all_, all_);
  }

 private:
  struct Request {
    std::int64_t number;
    RecordId id;
    bool is_found = false;
  };

  void found(const RecordId& id, std::string_view what, const char* todo = file_todo::record) {
    findings_.add(id, what, todo);
  }

  void count_rows() {
    TolerantRows rows(db_,
                      "SELECT (SELECT count(*) FROM idem_slots) + (SELECT count(*) FROM "
                      "idem_evidence) + (SELECT count(*) FROM idem_journal)");
    if (rows.step()) all_ = static_cast<std::uint64_t>(rows.integer(0));
  }

  void step() {
    if (++done_ % rows_between_progress == 0 && progress_) progress_(std::min(done_, all_), all_);
  }

  void end(const TolerantRows& rows, const char* table) {
    if (rows.failure().empty()) return;
    findings_.add("table " + std::string(table), "cannot be read to its end: " + rows.failure(),
                  file_todo::table);
  }

  void running() {
    TolerantRows rows(db_, "SELECT id, slot, record FROM idem_running ORDER BY cell");
    while (rows.step()) {
      const auto id = RunningTable::id_in(rows.bytes(0));
      if (!id) {
        findings_.add("a running record", "its id does not match its checksum", file_todo::key);
        continue;
      }
      ids_.push_back(*id);
      const auto record = decode_record(*id, rows.bytes(2));
      if (!record) {
        found(*id, record.error());
        continue;
      }
      if (record->state != State::in_progress) {
        found(*id, "it is not running, but among the running records");
      }
      count(*record, rows.integer(1));
    }
    end(rows, "idem_running");
  }

  void settled() {
    TolerantRows rows(db_,
                      "SELECT slot, id, state, due_at, claim_at, record, answer, body FROM "
                      "idem_slots NOT INDEXED");
    while (rows.step()) {
      step();
      const auto id = id_in(rows.bytes(1));
      if (!id) {
        findings_.add("record number " + std::to_string(rows.integer(0)), "it has lost its id",
                      file_todo::key);
        continue;
      }
      ids_.push_back(*id);
      const auto record = decode_record(*id, rows.bytes(5));
      if (!record) {
        found(*id, record.error());
        continue;
      }
      settled_row(*id, *record, rows);
      count(*record, rows.integer(0));
    }
    end(rows, "idem_slots");
  }

  void settled_row(const RecordId& id, const Record& record, TolerantRows& rows) {
    if (rows.integer(2) != static_cast<std::int64_t>(record.state)) {
      return found(id, "its state is not that of its row");
    }
    if (record.state == State::in_progress) {
      return found(id, "it is running, but among the settled records");
    }
    if (record.state == State::completed) {
      if (rows.is_null(6)) return found(id, "its answer is missing");
      const auto answer = decode_checked_answer(id, rows.bytes(6), rows.bytes(7));
      if (!answer) return found(id, answer.error());
    }
    const auto differs = [&](int at, const std::optional<StoreTime>& moment) {
      return rows.is_null(at) ? moment.has_value()
                              : !moment || rows.integer(at) != moment->time_since_epoch().count();
    };
    const bool waits = record.state == State::pending;
    if (differs(3, transitions::due_at(record)) ||
        differs(4, waits ? std::optional(record.locked_until) : std::nullopt)) {
      found(id, "the time at which it is due is not the one in the record", file_todo::schedule);
    }
  }

  void count(const Record& record, std::int64_t number) {
    const auto state = static_cast<std::size_t>(record.state);
    if (state < report_.by_state.size()) ++report_.by_state[state];
    findings_.highest_fence = std::max(findings_.highest_fence, record.fence().value_or(0));
    if (record.stored_request) requests_.push_back({number, record.id});
  }

  void same_ids() {
    std::ranges::sort(ids_);
    for (auto at = std::ranges::adjacent_find(ids_); at != ids_.end();
         at = std::ranges::adjacent_find(at + 1, ids_.end())) {
      found(*at, "it is found twice");
    }
  }

  void requests() {
    std::ranges::sort(requests_, {}, &Request::number);
    TolerantRows rows(db_, "SELECT slot, request FROM idem_requests ORDER BY slot");
    while (rows.step()) {
      const auto at = std::ranges::lower_bound(requests_, rows.integer(0), {}, &Request::number);
      // One that no record has is dropped with the record that takes its number.
      if (at == requests_.end() || at->number != rows.integer(0)) continue;
      at->is_found = true;
      if (!without_checksum(at->id, rows.bytes(1))) {
        found(at->id, "its request's checksum does not match");
      }
    }
    end(rows, "idem_requests");
    for (const Request& one : requests_) {
      if (!one.is_found) found(one.id, "its request is missing");
    }
  }

  void evidence() {
    TolerantRows rows(db_,
                      "SELECT id, fence, source, evidence, reason, before_state, after_state, "
                      "applied, observed_at, recorded_at, checksum, line FROM idem_evidence");
    while (rows.step()) {
      step();
      ++report_.evidence;
      const auto id = id_in(rows.bytes(0));
      const EvidenceEntry entry{.fence = fence_from(static_cast<std::uint64_t>(rows.integer(1))),
                                .source = std::string(rows.bytes(2)),
                                .evidence = std::string(rows.bytes(3)),
                                .reason = std::string(rows.bytes(4)),
                                .before = static_cast<State>(rows.integer(5)),
                                .after = static_cast<State>(rows.integer(6)),
                                .applied = rows.integer(7) != 0,
                                .observed_at = StoreTime(Millis(rows.integer(8))),
                                .recorded_at = StoreTime(Millis(rows.integer(9)))};
      // Lines of older schema versions have no checksum.
      const bool is_whole =
          id && (rows.is_null(10) || rows.integer(10) == checksum_of_line(*id, entry));
      if (is_whole) continue;
      const std::string line = "line " + std::to_string(rows.integer(11)) + " of its evidence";
      const std::string what = line + " does not match its checksum";
      if (id) {
        findings_.add(*id, what, file_todo::evidence);
      } else {
        findings_.add("a record that has lost its id", what, file_todo::evidence);
      }
    }
    end(rows, "idem_evidence");
  }

  void journals() {
    TolerantRows rows(db_,
                      "SELECT name, seq, at, line, total, checksum FROM idem_journal"
                      " ORDER BY name, seq");
    std::string journal;
    std::int64_t last = 0;
    std::int64_t bytes = 0;
    while (rows.step()) {
      step();
      ++report_.journal_lines;
      if (const std::string_view name = rows.bytes(0); name != journal) {
        journal = name;
        last = bytes = 0;
      }
      const std::int64_t seq = rows.integer(1);
      bytes += static_cast<std::int64_t>(rows.bytes(3).size());
      const bool follows = seq == last + 1 && rows.integer(4) == bytes;
      const bool is_whole =
          rows.integer(5) == checksum_of_line(journal, static_cast<std::uint64_t>(seq),
                                              rows.integer(2), rows.bytes(3));
      if (!follows || !is_whole) note_line(journal, seq, is_whole);
      last = seq;
      bytes = rows.integer(4);
    }
    end(rows, "idem_journal");
  }

  void note_line(const std::string& journal, std::int64_t seq, bool is_whole) {
    findings_.add(
        "journal " + journal + ", line " + std::to_string(seq),
        is_whole ? "it does not follow from the line before" : "it does not match its checksum",
        file_todo::line_of(journal));
  }

  sqlite3* db_;
  StoreFileReport& report_;
  FileFindings& findings_;
  const StoreFileProgress& progress_;
  std::uint64_t all_ = 0;
  std::uint64_t done_ = 0;
  std::vector<RecordId> ids_;
  std::vector<Request> requests_;
};

}  // namespace

void check_rows(sqlite3* db, StoreFileReport& report, FileFindings& findings,
                const StoreFileProgress& progress) {
  Rows(db, report, findings, progress).check();
}

}  // namespace idem::sqlite
