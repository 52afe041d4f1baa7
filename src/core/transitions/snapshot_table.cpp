#include "core/transitions/snapshot_table.hpp"

#include <idem/assert.hpp>

#include <algorithm>

namespace idem {

using transitions::Write;

void SnapshotTable::put(const RecordId& id,
                        std::expected<std::optional<Record>, StoreError> found) {
  std::erase_if(reads_, [&](const Read& read) { return read.id == id; });
  reads_.push_back({id, std::move(found)});
}

void SnapshotTable::clear() {
  reads_.clear();
  log_.clear();
  begin_step();
}

void SnapshotTable::begin_step() {
  write_ = {};
  ended_a_lease_ = false;
}

Fence SnapshotTable::highest_fence() const noexcept {
  Fence highest = 0;
  for (const Read& read : reads_) {
    if (!read.found || !*read.found) continue;
    highest = std::max(highest, (*read.found)->fence().value_or(0));
  }
  return highest;
}

const SnapshotTable::Read* SnapshotTable::read_of(const RecordId& id) const noexcept {
  const auto found = std::ranges::find(reads_, id, &Read::id);
  return found == reads_.end() ? nullptr : &*found;
}

RecordTable::Loaded SnapshotTable::load(const RecordId& id, Parts parts, StoreTime now) {
  const Read* const read = read_of(id);
  IDEM_ASSERT(read != nullptr);
  if (!read->found) return std::unexpected(read->found.error());
  if (!*read->found) return std::nullopt;
  Row row{**read->found};
  const bool is_answered =
      parts != Parts::slot && transitions::state_at(row.record, now) == State::completed;
  if (!is_answered && parts != Parts::all) row.record.response.reset();
  if (parts != Parts::all && row.record.stored_request) row.record.stored_request->clear();
  return row;
}

void SnapshotTable::note_before(const RecordId& id) {
  IDEM_ASSERT(write_.change.write == Write::none || write_.id == id);
  if (write_.change.write != Write::none) return;
  write_.id = id;
  write_.before = *read_of(id)->found;
}

void SnapshotTable::insert(Record&& record) {
  note_before(record.id);
  write_.change = {Write::insert, true, true};
  write_.after = std::move(record);
}

void SnapshotTable::update(Row&& row, const transitions::Change& change) {
  note_before(row.record.id);
  write_.change = change;
  write_.after = std::move(row.record);
}

void SnapshotTable::erase(const RecordId& id, std::int64_t) {
  note_before(id);
  write_.change = {Write::erase, true, true};
  write_.after.reset();
}

std::vector<RecordId> SnapshotTable::ids() const {
  std::vector<RecordId> all;
  for (const Read& read : reads_) all.push_back(read.id);
  return all;
}

std::vector<RecordId> SnapshotTable::due_for_sweep(StoreTime, std::size_t) { return ids(); }
std::vector<RecordId> SnapshotTable::due_for_reap(StoreTime, std::size_t) { return ids(); }

std::optional<RecordId> SnapshotTable::next_claimable(StoreTime now) {
  for (const Read& read : reads_) {
    if (!read.found) return read.id;
    if (*read.found && transitions::is_claimable(**read.found, now)) return read.id;
  }
  return std::nullopt;
}

void SnapshotTable::append_evidence(const RecordId& id, const EvidenceEntry& entry) {
  write_.id = id;
  write_.evidence.push_back(entry);
}

RecordTable::Log SnapshotTable::evidence(const RecordId&) { return log_; }

// A snapshot holds single records, not the whole store: no step may ask for these.
std::optional<RecordId> SnapshotTable::list(const List&, StoreTime, std::size_t,
                                            std::vector<Record>&) {
  IDEM_ASSERT(!"a snapshot has no list");
  return std::nullopt;
}
void SnapshotTable::tally(Tallied&) { IDEM_ASSERT(!"a snapshot has no tally"); }
void SnapshotTable::visit(const std::function<bool(const Record*)>&) {
  IDEM_ASSERT(!"a snapshot is not visited");
}
void SnapshotTable::save(const Naming&) { IDEM_ASSERT(!"a snapshot keeps no names"); }
Census SnapshotTable::census(StoreTime) {
  IDEM_ASSERT(!"a snapshot has no census");
  return {};
}

}  // namespace idem
