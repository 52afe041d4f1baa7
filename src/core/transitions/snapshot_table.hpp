#pragma once

#include "core/transitions/record_table.hpp"

#include <map>
#include <optional>
#include <vector>

/// For a store that only keeps bytes: this process makes the step over a copy of the record, and
/// the store writes the result on the condition that the record did not change meanwhile. So there
/// is one implementation of the protocol's steps (store_steps.hpp) for every store.
namespace idem {

/// All that one step does to one record.
struct RecordWrite {
  RecordId id;
  /// As read. None: there was no record.
  std::optional<Record> before;
  /// As to be written; an unchanged answer or request is left out. None: the step erases it.
  std::optional<Record> after;
  transitions::Change change;
  std::vector<EvidenceEntry> evidence;  ///< Appended, whether or not the record changes.
  UsageChange usage{};                  ///< Of its scope.

  bool is_empty() const noexcept {
    return change.write == transitions::Write::none && evidence.empty();
  }
};

/// The records that were read for one call, and the step's write. Serves calls about records by
/// name, and one record's sweep, reap or claim. The store itself lists and counts.
class SnapshotTable final : public RecordTable, public Tally {
 public:
  /// The record under `id` as read; replaces an earlier one. An error: its bytes are damaged.
  void put(const RecordId& id, std::expected<std::optional<Record>, StoreError> found);
  void put_evidence(std::vector<EvidenceEntry> log) { log_ = std::move(log); }
  /// Of the call's scope.
  void put_usage(const Usage& usage) { usage_ = usage; }
  void clear();

  /// Forgets the write of the step before.
  void begin_step();
  /// Of all records that were read.
  Fence highest_fence() const noexcept;

  /// The step's write: at most one record, as none of the calls that it serves writes more.
  RecordWrite take_write() { return std::move(write_); }
  bool ended_a_lease() const noexcept { return ended_a_lease_; }

  Loaded load(const RecordId& id, Parts parts, StoreTime now) override;
  void insert(Record&& record) override;
  void update(Row&& row, const transitions::Change& change) override;
  void erase(const RecordId& id, std::int64_t place) override;
  std::vector<RecordId> due_for_sweep(StoreTime now, std::size_t limit) override;
  std::vector<RecordId> due_for_reap(StoreTime now, std::size_t limit) override;
  std::optional<RecordId> next_claimable(StoreTime now) override;
  void hide_from_lifecycle(const RecordId&) override {}
  void hide_from_claims(const RecordId&) override {}
  std::optional<RecordId> list(const List& verb, StoreTime now, std::size_t rows_max,
                               std::vector<Record>& found) override;
  void tally(Tallied& into) override;
  void visit(const std::function<bool(const Record*)>& see) override;
  void save(const Naming& naming) override;
  Usage usage_of(const std::string&) override { return usage_; }
  void add_usage(const std::string&, const UsageChange& change) override { write_.usage = change; }
  void append_evidence(const RecordId& id, const EvidenceEntry& entry) override;
  Log evidence(const RecordId& id) override;
  Journals* journals() override { return nullptr; }

  void changed(const RecordId&, const std::optional<StateSummary>&,
               const std::optional<StateSummary>&) override {}
  void lease_ended() override { ended_a_lease_ = true; }
  Census census(StoreTime now) override;

 private:
  struct Read {
    RecordId id;
    std::expected<std::optional<Record>, StoreError> found;
  };
  const Read* read_of(const RecordId& id) const noexcept;
  void note_before(const RecordId& id);
  std::vector<RecordId> ids() const;

  std::vector<Read> reads_;
  std::vector<EvidenceEntry> log_;
  RecordWrite write_;
  Usage usage_;
  bool ended_a_lease_ = false;
};

}  // namespace idem
