#include "store/sqlite/running_rows.hpp"

#include "store/sqlite/slot_row.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace idem::sqlite {
namespace {

constexpr std::string_view floor_name = "running_floor";

class RunningRows final : public RecordTable {
 public:
  RunningRows(sqlite3* db, Meta& meta, std::unique_ptr<SlotTable> slots)
      : meta_(meta), slots_(std::move(slots)), floor_(meta.integer(floor_name).value_or(0)) {
    read_all(db);
  }

  Loaded load(const RecordId& id, Parts parts, StoreTime now) override {
    const auto found = running_.find(id);
    if (found == running_.end()) return slots_->load(id, parts, now);
    if (!found->second.readable) return std::unexpected(found->second.why);
    Row row = found->second.row;
    if (parts == Parts::all && row.record.stored_request) {
      auto request = slots_->request_of(row);
      if (!request) return std::unexpected(std::move(request.error()));
      row.record.stored_request = std::move(*request);
    }
    return row;
  }

  std::int64_t insert(const Record& record) override {
    const std::int64_t place = slots_->insert(record);
    if (record.state == State::in_progress) remember(record, place);
    return place;
  }

  void update(const Row& row, const transitions::Change& change) override {
    slots_->update(row, change);
    forget(row.record.id);
    if (row.record.state == State::in_progress) remember(row.record, row.place);
  }

  void erase(const Row& row) override {
    slots_->erase(row);
    forget(row.record.id);
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

  void hide_from_lifecycle(const RecordId& id) override {
    const auto found = running_.find(id);
    if (found == running_.end()) return slots_->hide_from_lifecycle(id);
    undue(found->second);
  }
  void hide_from_claims(const RecordId& id) override { slots_->hide_from_claims(id); }

  // The settled rows of a slice come in order of their ids; the running ones of the same stretch
  // are put between them.
  std::optional<RecordId> list(const List& verb, StoreTime now, std::size_t rows_max,
                               std::vector<Record>& found) override {
    std::vector<Record> slice;
    List rest_of_it = verb;
    rest_of_it.limit = verb.limit > found.size() ? verb.limit - found.size() : 0;
    const auto rest = slots_->list(rest_of_it, now, rows_max, slice);
    auto at = verb.after ? running_.upper_bound(*verb.after) : running_.begin();
    for (; at != running_.end() && !(rest && at->first > *rest); ++at) {
      if (!at->second.readable || !is_listed(verb, at->second.row.record)) continue;
      slice.push_back(without_bodies(at->second.row.record));
    }
    std::ranges::sort(slice, {}, &Record::id);
    if (slice.size() > rest_of_it.limit) slice.resize(rest_of_it.limit);
    std::ranges::move(slice, std::back_inserter(found));
    return found.size() >= verb.limit ? std::nullopt : rest;
  }

  void append_evidence(const RecordId& id, const EvidenceEntry& entry) override {
    slots_->append_evidence(id, entry);
  }
  std::vector<EvidenceEntry> evidence(const RecordId& id) override { return slots_->evidence(id); }

 private:
  struct Running {
    Row row;  ///< Without the stored request's bytes.
    std::optional<StoreTime> due{};
    bool readable = true;
    StoreError why{};
  };

  void remember(const Record& record, std::int64_t place) {
    keep_floor_below(place);
    Running running{.row = {record, place}};
    if (running.row.record.stored_request) running.row.record.stored_request->clear();
    running.due = transitions::due_at(record);
    if (running.due) due_.emplace(*running.due, record.id);
    places_.insert(place);
    running_.insert_or_assign(record.id, std::move(running));
  }

  void forget(const RecordId& id) {
    const auto found = running_.find(id);
    if (found == running_.end()) return;
    undue(found->second);
    places_.erase(found->second.row.place);
    running_.erase(found);
  }

  void undue(Running& running) {
    if (running.due) due_.erase({*running.due, running.row.record.id});
    running.due.reset();
  }

  // In the transaction that writes the row, so the floor is never above a running row. It is raised
  // now and then only: what lies between is read at the next start, and costs little.
  void keep_floor_below(std::int64_t place) {
    if (place < floor_) return put_floor(place);
    if (place < floor_ + limits::running_floor_step) return;
    // One row that runs for long holds the floor down for all, so this is asked at every insert.
    const std::int64_t lowest = places_.empty() ? place : std::min(place, *places_.begin());
    if (lowest >= floor_ + limits::running_floor_step / 2) put_floor(lowest);
  }

  void put_floor(std::int64_t place) {
    floor_ = place;
    meta_.put_integer(floor_name, place);
  }

  void read_all(sqlite3* db) {
    Statement rows(db, "SELECT " + std::string(slot_columns) +
                           " FROM slots WHERE slot >= ?1 AND state = 2 ORDER BY slot");
    rows.bind(1, floor_);
    while (rows.step()) {
      auto record = read_slot(rows);
      if (record) {
        remember(*record, rows.integer(0));
        continue;
      }
      // It stays in the way of its key: what cannot be read must not be taken for absent.
      Running damaged{.row = {{}, rows.integer(0)}, .readable = false};
      const auto id = rows.bytes(1);
      std::copy_n(id.begin(), std::min(id.size(), damaged.row.record.id.bytes.size()),
                  damaged.row.record.id.bytes.begin());
      damaged.why = {StoreError::Code::refused, "record " + to_hex(damaged.row.record.id.bytes) +
                                                    " cannot be read: " + record.error()};
      places_.insert(damaged.row.place);
      running_.insert_or_assign(damaged.row.record.id, std::move(damaged));
    }
  }

  Meta& meta_;
  std::unique_ptr<SlotTable> slots_;
  std::map<RecordId, Running> running_;
  std::set<std::pair<StoreTime, RecordId>> due_;
  std::set<std::int64_t> places_;  ///< Of all that run; the lowest bounds the floor.
  std::int64_t floor_;
};

}  // namespace

std::unique_ptr<RecordTable> keep_running_rows(sqlite3* db, Meta& meta,
                                               std::unique_ptr<SlotTable> slots) {
  return std::make_unique<RunningRows>(db, meta, std::move(slots));
}

}  // namespace idem::sqlite
