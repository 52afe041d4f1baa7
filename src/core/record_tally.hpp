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
struct Standing {
  State state;
  StoreTime since;
};

/// Keeps count while the steps change the table, so that nobody has to look through it to know how
/// many records are unknown and since when. Used by the table's thread.
class RecordTally {
 public:
  /// Looks through `table`, once; it must outlive this.
  explicit RecordTally(RecordTable& table);

  void changed(const RecordId& id, const std::optional<Standing>& before,
               const std::optional<Standing>& after);
  void lease_ended() noexcept { ++leases_ended_; }

  Census census(StoreTime now);

 private:
  RecordTable& table_;
  Tallied tallied_;
  std::uint64_t leases_ended_ = 0;
};

}  // namespace idem
