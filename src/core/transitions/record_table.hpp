#pragma once

#include "core/naming/naming.hpp"
#include "core/transitions/journals.hpp"
#include "core/transitions/quota.hpp"
#include "core/transitions/record_tally.hpp"
#include "core/transitions/transitions.hpp"

#include <functional>
#include <mutex>
#include <vector>

namespace idem {

/// A record with its row's place, which means something to the table alone.
struct Row {
  Record record;
  std::int64_t place = 0;
};

/// The storage that the protocol's steps need; store_steps.hpp does the rest. Used by one thread. A
/// failure of the medium never returns: it ends the process (fail closed).
class RecordTable {
 public:
  /// The parts of a record to read. A part that was not read must not be written: see Change.
  enum class Parts : std::uint8_t {
    slot,    ///< No answer; stored_request is present but empty if there is one.
    answer,  ///< With the stored answer, unless the record reads as expired.
    all,     ///< With the stored request, too.
  };
  using Loaded = std::expected<std::optional<Row>, StoreError>;

  virtual ~RecordTable() = default;

  /// Error: the row exists and cannot be read. Other records are not affected.
  virtual Loaded load(const RecordId& id, Parts parts, StoreTime now) = 0;
  /// There is no row of this id.
  virtual void insert(Record&& record) = 0;
  /// `row` was loaded, and nothing was written since.
  virtual void update(Row&& row, const transitions::Change& change) = 0;
  virtual void erase(const RecordId& id, std::int64_t place) = 0;
  /// Before the end of a transaction: passes on all writes that were held back.
  virtual void flush() {}

  /// Work on the medium that no call needs but that must be done some day.
  virtual bool has_upkeep() const { return false; }
  /// Does a part of it, about so many bytes, within a transaction.
  virtual void upkeep(std::size_t /*bytes*/) {}

  /// Up to `limit` records that sweep() / reap() would change, the longest due first.
  virtual std::vector<RecordId> due_for_sweep(StoreTime now, std::size_t limit) = 0;
  virtual std::vector<RecordId> due_for_reap(StoreTime now, std::size_t limit) = 0;
  /// The claimable record that has been due the longest.
  virtual std::optional<RecordId> next_claimable(StoreTime now) = 0;

  /// Leaves out a row that cannot be read, so that it does not block the rows behind it.
  virtual void hide_from_lifecycle(const RecordId& id) = 0;
  virtual void hide_from_claims(const RecordId& id) = 0;

  /// Appends the records that `verb` asks for to `found`, reading at most `rows_max` rows. Returns
  /// where to go on (as `verb.after`), or none at the end.
  virtual std::optional<RecordId> list(const List& verb, StoreTime now, std::size_t rows_max,
                                       std::vector<Record>& found) = 0;

  /// Counts every record by its stored state. Reads the whole table, so it is called at the start
  /// and then rarely. `into` is empty.
  virtual void tally(Tallied& into) = 0;
  /// Calls `see` with every record, live or not, without answer and request, or with nullptr for
  /// one that cannot be read; until the end or until `see` returns false.
  virtual void visit(const std::function<bool(const Record*)>& see) = 0;
  virtual void save(const Naming& naming) = 0;

  /// The scope's usage, including the changes of this transaction.
  virtual Usage usage_of(const std::string& scope) = 0;
  virtual void add_usage(const std::string& scope, const UsageChange& change) = 0;
  /// While it is held, no other table of the same store admits a key of the scope.
  virtual std::unique_lock<std::mutex> lock_usage(const std::string& /*scope*/) { return {}; }

  virtual void append_evidence(const RecordId& id, const EvidenceEntry& entry) = 0;
  /// Oldest first. Error: a line is damaged, so that nothing may be decided by the log.
  using Log = std::expected<std::vector<EvidenceEntry>, StoreError>;
  virtual Log evidence(const RecordId& id) = 0;

  /// Null: the table holds single records only, and its store makes the journals' steps itself.
  virtual Journals* journals() = 0;
};

/// Stands in a listing for a record that cannot be read (List::damaged).
Record damaged_row(const RecordId& id);

/// True if `verb` asks for `record`, in its present state.
bool is_listed(const List& verb, const Record& record) noexcept;

/// The record for a listing: of its answer only the status, and no request.
Record without_bodies(Record record);

}  // namespace idem
