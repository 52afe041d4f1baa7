#pragma once

#include "core/transitions/record_table.hpp"

#include <map>
#include <optional>
#include <vector>

/// For a store that lies elsewhere and knows bytes only: a step is made here, over what was read
/// from there, and is written there on the condition that nobody wrote that record meanwhile. So
/// there is one implementation of the protocol's steps (store_steps.hpp), whatever the store is.
namespace idem {

/// All that one step does to one record.
struct RecordWrite {
  RecordId id;
  /// As it was read. None: there was none.
  std::optional<Record> before;
  /// As it is to lie there, without what was not changed of its answer and request. None: gone.
  std::optional<Record> after;
  transitions::Change change;
  std::vector<EvidenceEntry> evidence;  ///< To be appended, whether or not the record changes.
  UsageChange usage{};                  ///< Of its scope.

  bool is_empty() const noexcept {
    return change.write == transitions::Write::none && evidence.empty();
  }
};

/// What was read of the store for one call, and what the step wrote over it. Serves calls about
/// records by name, one record's sweep, reap or claim; listing and counting are the store's.
class SnapshotTable final : public RecordTable, public Tally {
 public:
  /// What lies under `id`, as it was read, in place of what was said of it before. An error stands
  /// for bytes that are no record.
  void put(const RecordId& id, std::expected<std::optional<Record>, StoreError> found);
  void put_evidence(std::vector<EvidenceEntry> log) { log_ = std::move(log); }
  /// Of the scope that the call speaks of.
  void put_usage(const Usage& usage) { usage_ = usage; }
  void clear();

  /// Forgets what a step wrote before.
  void begin_step();
  /// Of all that was read.
  Fence highest_fence() const noexcept;

  /// The step's. At most one record: none of the calls that it serves writes more.
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
  std::vector<EvidenceEntry> evidence(const RecordId& id) override;

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
