#pragma once

#include "core/naming/naming.hpp"
#include "core/transitions/quota.hpp"
#include "core/transitions/record_tally.hpp"
#include "core/transitions/transitions.hpp"

#include <functional>
#include <vector>

namespace idem {

/// A record with the place it lies in, which is the table's own matter.
struct Row {
  Record record;
  std::int64_t place = 0;
};

/// What the protocol's steps need of a place to keep records; store_steps.hpp does the rest. Used
/// by one thread. A failure of the medium never returns: it ends the process (fail closed).
class RecordTable {
 public:
  /// Which of a record's parts are read. What is left out must not be written: Change says so.
  enum class Parts : std::uint8_t {
    slot,    ///< No answer; stored_request is present but empty where there is one.
    answer,  ///< With the stored answer, unless the record reads as expired.
    all,     ///< With the stored request, too.
  };
  using Loaded = std::expected<std::optional<Row>, StoreError>;

  virtual ~RecordTable() = default;

  /// Error: the row is there and cannot be read; it concerns this record only.
  virtual Loaded load(const RecordId& id, Parts parts, StoreTime now) = 0;
  /// There is no row of this id. A step's record is moved once on its way to where it stays.
  virtual void insert(Record&& record) = 0;
  /// `row` was loaded, and nothing was written in between.
  virtual void update(Row&& row, const transitions::Change& change) = 0;
  virtual void erase(const RecordId& id, std::int64_t place) = 0;
  /// Before a transaction ends: nothing of it is held back any more.
  virtual void flush() {}

  /// Up to `limit` records that sweep() / reap() would change, those longest due first.
  virtual std::vector<RecordId> due_for_sweep(StoreTime now, std::size_t limit) = 0;
  virtual std::vector<RecordId> due_for_reap(StoreTime now, std::size_t limit) = 0;
  /// The claimable record that has been due the longest.
  virtual std::optional<RecordId> next_claimable(StoreTime now) = 0;

  /// Keeps a row that cannot be read from standing in the way of those behind it.
  virtual void hide_from_lifecycle(const RecordId& id) = 0;
  virtual void hide_from_claims(const RecordId& id) = 0;

  /// Appends to `found` what `verb` asks for, looking at `rows_max` rows at most. Answers where to
  /// go on (as `verb.after`), or none at the end.
  virtual std::optional<RecordId> list(const List& verb, StoreTime now, std::size_t rows_max,
                                       std::vector<Record>& found) = 0;

  /// Counts every record by its stored state. Looks at the whole table, so it is asked at the start
  /// and after that hardly ever. `into` is empty.
  virtual void tally(Tallied& into) = 0;
  /// Shows every record, live or not, without answer and request; null stands for one that cannot
  /// be read. Until the end or until `see` answers false.
  virtual void visit(const std::function<bool(const Record*)>& see) = 0;
  virtual void save(const Naming& naming) = 0;

  /// What the counted records of a scope take, with what was added in this transaction.
  virtual Usage usage_of(const std::string& scope) = 0;
  virtual void add_usage(const std::string& scope, const UsageChange& change) = 0;

  virtual void append_evidence(const RecordId& id, const EvidenceEntry& entry) = 0;
  virtual std::vector<EvidenceEntry> evidence(const RecordId& id) = 0;
};

/// True when `record`, as it reads now, is one that `verb` asks for.
bool is_listed(const List& verb, const Record& record) noexcept;

/// What a listing shows: no answer but its status, no request.
Record without_bodies(Record record);

}  // namespace idem
