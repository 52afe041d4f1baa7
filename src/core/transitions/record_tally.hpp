#pragma once

#include <idem/store.hpp>

#include <set>

namespace idem {

class RecordTable;

/// The counts of a table.
struct Tallied {
  std::array<std::uint64_t, 7> by_state{};
  std::set<std::pair<StoreTime, RecordId>> unknowns{};  ///< The oldest of them.
  bool has_all_unknowns = true;

  void add_unknown(StoreTime since, const RecordId& id);
};

/// A record's state and since when it has it.
struct StateSummary {
  State state;
  StoreTime since;
};

/// Counts the steps' changes, so that no one has to read the whole table for the number of unknown
/// records and their age. Used by the table's thread.
class Tally {
 public:
  virtual ~Tally() = default;
  /// None: there was, or is, no record.
  virtual void changed(const RecordId& id, const std::optional<StateSummary>& before,
                       const std::optional<StateSummary>& after) = 0;
  /// A reserve ended a lease that was over.
  virtual void lease_ended() = 0;
  virtual Census census(StoreTime now) = 0;
};

/// The tally of a table that only its own thread changes.
class RecordTally final : public Tally {
 public:
  /// Reads the whole `table` once; it must outlive this object.
  explicit RecordTally(RecordTable& table);

  void changed(const RecordId& id, const std::optional<StateSummary>& before,
               const std::optional<StateSummary>& after) override;
  void lease_ended() override { ++leases_ended_; }
  Census census(StoreTime now) override;

 private:
  RecordTable& table_;
  Tallied tallied_;
  std::uint64_t leases_ended_ = 0;
};

}  // namespace idem
