#pragma once

#include <idem/store.hpp>

#include <set>

namespace idem {

class RecordTable;

/// What a table holds, as it was looked through once.
struct Tallied {
  std::array<std::uint64_t, 7> by_state{};
  std::set<std::pair<StoreTime, RecordId>> unknowns{};  ///< The oldest of them.
  bool has_all_unknowns = true;

  void add_unknown(StoreTime since, const RecordId& id);
};

/// A record's state with the moment from which it has it; none where there is no record.
struct StateSummary {
  State state;
  StoreTime since;
};

/// Hears what the steps do to a table, so that nobody has to look through it to know how many
/// records are unknown and since when. Used by the table's thread.
class Tally {
 public:
  virtual ~Tally() = default;
  virtual void changed(const RecordId& id, const std::optional<StateSummary>& before,
                       const std::optional<StateSummary>& after) = 0;
  /// By a reserve that met it.
  virtual void lease_ended() = 0;
  virtual Census census(StoreTime now) = 0;
};

/// Of a table that only its own thread changes.
class RecordTally final : public Tally {
 public:
  /// Looks through `table`, once; it must outlive this.
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
