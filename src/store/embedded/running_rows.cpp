#include "store/embedded/running_rows.hpp"

#include "core/record/stored_record_codec.hpp"

#include <idem/assert.hpp>
#include <idem/limits.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace idem::embedded {
namespace {

constexpr std::string_view number_is_shared = "its number is another record's, too";

class RunningRows final : public RecordTable {
 public:
  RunningRows(std::unique_ptr<RunningCells> cells, std::unique_ptr<SlotTable> slots)
      : slots_(std::move(slots)), cells_(std::move(cells)) {
    cells_->read([this](const RunningCells::Found& found) { add_found(found); });
    places_.clear();
  }

  Loaded load(const RecordId& id, Parts parts, StoreTime now) override {
    const auto found = running_.find(id);
    if (found == running_.end()) return slots_->load(id, parts, now);
    if (!found->second.why_not.empty()) {
      return std::unexpected(unreadable(id, found->second.why_not));
    }
    Loaded loaded(std::in_place, found->second.row);
    if (parts == Parts::all && (*loaded)->record.stored_request) {
      auto request = slots_->request_of(**loaded);
      if (!request) return std::unexpected(std::move(request.error()));
      (*loaded)->record.stored_request = std::move(*request);
    }
    return loaded;
  }

  void insert(Record&& record) override {
    if (record.state != State::in_progress) return slots_->insert(std::move(record));
    if (!record.stored_request) return begin({std::move(record)});
    // Of another store. The slots hold its request, which stays there.
    Record waits = record;
    waits.state = State::pending;
    slots_->insert(std::move(waits));
    const auto row = slots_->load(record.id, Parts::slot, {});
    IDEM_ASSERT(row && *row);
    const std::int64_t place = (*row)->place;
    slots_->take_out(record.id, place);
    begin({std::move(record), place});
  }

  void update(Row&& row, const transitions::Change& change) override {
    const bool runs = row.record.state == State::in_progress;
    const auto found = running_.find(row.record.id);
    if (found == running_.end()) {
      if (!runs) return slots_->update(std::move(row), change);
      slots_->take_out(row.record.id, row.place);
      drop_request_if(row, change);
      begin(std::move(row));
    } else if (runs) {
      drop_request_if(row, change);
      go_on(found->second, std::move(row));
    } else {
      cells_->erase(found->second.cell);
      forget(found);
      slots_->put_in(row, change);
    }
  }

  void erase(const RecordId& id, std::int64_t place) override {
    const auto found = running_.find(id);
    if (found == running_.end()) return slots_->erase(id, place);
    cells_->erase(found->second.cell);
    if (place != 0) slots_->drop_request(id, place);
    forget(found);
  }

  std::vector<RecordId> due_for_sweep(StoreTime now, std::size_t limit) override {
    std::vector<RecordId> ids;
    for (const auto& [moment, id] : due_) {
      if (moment > now || ids.size() >= limit) break;
      ids.push_back(id);
    }
    if (ids.size() >= limit) return ids;
    const auto pending = slots_->due_for_sweep(now, limit - ids.size());
    ids.insert(ids.end(), pending.begin(), pending.end());
    return ids;
  }

  std::vector<RecordId> due_for_reap(StoreTime now, std::size_t limit) override {
    return slots_->due_for_reap(now, limit);
  }
  std::optional<RecordId> next_claimable(StoreTime now) override {
    return slots_->next_claimable(now);
  }

  // An id that is found twice may block both places.
  void hide_from_lifecycle(const RecordId& id) override {
    if (const auto found = running_.find(id); found != running_.end()) undue(found->second);
    slots_->hide_from_lifecycle(id);
  }
  void hide_from_claims(const RecordId& id) override { slots_->hide_from_claims(id); }

  // The settled rows of a slice come in order of their ids; the running ones of the same range are
  // sorted in.
  std::optional<RecordId> list(const List& verb, StoreTime now, std::size_t rows_max,
                               std::vector<Record>& found) override {
    std::vector<Record> slice;
    List rest_of_it = verb;
    rest_of_it.limit = verb.limit > found.size() ? verb.limit - found.size() : 0;
    const bool are_all_here = verb.state == State::in_progress;
    const auto rest = are_all_here ? std::nullopt : slots_->list(rest_of_it, now, rows_max, slice);
    auto at = verb.after ? running_.upper_bound(*verb.after) : running_.begin();
    // In order of their ids: rows beyond the limit are not even copied.
    const std::size_t most = slice.size() + rest_of_it.limit;
    for (; at != running_.end() && !(rest && at->first > *rest) && slice.size() < most; ++at) {
      const bool is_sound = at->second.why_not.empty();
      Record listed = is_sound ? without_bodies(at->second.row.record) : damaged_row(at->first);
      if (is_listed(verb, listed)) slice.push_back(std::move(listed));
    }
    std::ranges::sort(slice, {}, &Record::id);
    if (slice.size() > rest_of_it.limit) slice.resize(rest_of_it.limit);
    std::ranges::move(slice, std::back_inserter(found));
    return found.size() >= verb.limit ? std::nullopt : rest;
  }

  void tally(Tallied& into) override {
    slots_->tally(into);
    for (const auto& [id, running] : running_) {
      if (running.why_not.empty()) ++into.by_state[static_cast<std::size_t>(State::in_progress)];
    }
  }
  bool has_upkeep() const override { return slots_->has_upkeep(); }
  void upkeep(std::size_t bytes) override { slots_->upkeep(bytes); }

  void flush() override {
    cells_->flush();
    slots_->flush();
  }

  void visit(const std::function<bool(const Record*)>& see) override {
    for (const auto& [id, running] : running_) {
      if (!see(running.why_not.empty() ? &running.row.record : nullptr)) return;
    }
    slots_->visit(see);
  }
  void save(const Naming& naming) override { slots_->save(naming); }

  Usage usage_of(const std::string& scope) override { return slots_->usage_of(scope); }
  void add_usage(const std::string& scope, const UsageChange& change) override {
    slots_->add_usage(scope, change);
  }
  std::unique_lock<std::mutex> lock_usage(const std::string& scope) override {
    return slots_->lock_usage(scope);
  }

  void append_evidence(const RecordId& id, const EvidenceEntry& entry) override {
    slots_->append_evidence(id, entry);
  }
  Log evidence(const RecordId& id) override { return slots_->evidence(id); }
  Journals* journals() override { return slots_->journals(); }

 private:
  struct Running {
    Row row;  ///< Without the stored request's bytes.
    std::int64_t cell = 0;
    std::optional<StoreTime> due{};
    std::string why_not{};  ///< Not empty: the reason why the record cannot be read.
  };
  using Rows = std::map<RecordId, Running>;

  /// For a record that did not run.
  void begin(Row&& row) {
    const std::int64_t cell = cells_->insert(row.record, row.place);
    remember(std::move(row), cell);
  }

  void go_on(Running& running, Row&& row) {
    cells_->update(running.cell, row.record, row.place);
    undue(running);
    running.row = std::move(row);
    make_due(running);
  }

  void remember(Row&& row, std::int64_t cell) {
    if (row.record.stored_request) row.record.stored_request->clear();
    const RecordId id = row.record.id;
    const auto [at, is_new] = running_.try_emplace(id, std::move(row), cell);
    IDEM_ASSERT(is_new);
    make_due(at->second);
  }

  void forget(Rows::iterator at) {
    undue(at->second);
    running_.erase(at);
  }

  void make_due(Running& running) {
    running.due = transitions::due_at(running.row.record);
    if (running.due) due_.emplace(*running.due, running.row.record.id);
  }

  void undue(Running& running) {
    if (running.due) due_.erase({*running.due, running.row.record.id});
    running.due.reset();
  }

  // A transition to in_progress, or within it, never stores a request.
  void drop_request_if(const Row& row, const transitions::Change& change) {
    if (!change.request) return;
    IDEM_ASSERT(!row.record.stored_request);
    if (row.place != 0) slots_->drop_request(row.record.id, row.place);
  }

  void add_found(const RunningCells::Found& found) {
    const RecordId& id = found.id;
    auto record = decode_record(id, found.record);
    const std::string_view why_not =
        record ? what_is_wrong(id, *record, found.place) : record.error();
    const auto [namesake, is_new] = places_.emplace(found.place, id);
    const bool is_shared = found.place != 0 && !is_new;
    if (is_shared) refuse(namesake->second, number_is_shared);
    if (is_shared || !why_not.empty()) return refuse(id, is_shared ? number_is_shared : why_not);
    remember({std::move(*record), found.place}, found.cell);
  }

  std::string_view what_is_wrong(const RecordId& id, const Record& record, std::int64_t place) {
    if (record.state != State::in_progress)
      return "it is not running, but among the running records";
    if (running_.contains(id)) return "it is found twice among the running records";
    if (slots_->holds_id(id)) return "it is found twice, as running and as settled";
    if (place == 0) return record.stored_request ? "its request has no number" : "";
    if (place < 0 || place >= limits::row_numbers_end) return "its number is out of range";
    return slots_->holds_place(place) ? number_is_shared : "";
  }

  /// The key stays blocked: a record that cannot be read must not count as absent.
  void refuse(const RecordId& id, std::string_view why) {
    Running& refused = running_[id];
    undue(refused);
    refused.row.record.id = id;
    refused.why_not = why;
    slots_->leave_out(id);
  }

  std::unique_ptr<SlotTable> slots_;
  Rows running_;
  std::set<std::pair<StoreTime, RecordId>> due_;
  std::map<std::int64_t, RecordId> places_;  ///< Used only while the rows are read.
  std::unique_ptr<RunningCells> cells_;
};

}  // namespace

StoreError unreadable(const RecordId& id, std::string_view why) {
  return {StoreError::Code::damaged,
          "record " + to_hex(id.bytes) + " cannot be read: " + std::string(why), id};
}

std::unique_ptr<RecordTable> keep_running_rows(std::unique_ptr<RunningCells> cells,
                                               std::unique_ptr<SlotTable> slots) {
  return std::make_unique<RunningRows>(std::move(cells), std::move(slots));
}

}  // namespace idem::embedded
