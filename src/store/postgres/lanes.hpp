#pragma once

#include "store/sql_server/waiting.hpp"

#include <idem/record.hpp>
#include <idem/store.hpp>

#include <deque>
#include <vector>

/// The calls that wait for a connection. On the loop's thread only.
namespace idem::postgres {

using sql_server::Waiting;

/// Calls that one statement can carry share a lane. Reserves and owners' verbs have two, so that no
/// settling write waits behind new work.
enum class Lane : std::uint8_t { reserves, owners, finds, others };
inline constexpr std::size_t lane_count = 4;
Lane lane_of(const StoreCall& call) noexcept;

/// The call's record; null: the call is sent alone.
const RecordId* record_of(const StoreCall& call) noexcept;

class Lanes {
 public:
  void add(Waiting waiting);
  /// Calls that are sent again, before all later ones.
  void put_back(std::vector<Waiting> calls);
  /// Up to `most` calls of `lane` for one statement, in the order of their records, and in the
  /// order of arrival for one record. Owners' verbs are of different records: a second one waits.
  /// Of a crowd it takes half: while one half is settled the other is reserved, so both lanes have
  /// work. A whole crowd would move from lane to lane together.
  std::vector<Waiting> take(Lane lane, std::size_t most);
  /// The calls of the last take() have their results.
  void settle(Lane lane) { under_way_[static_cast<std::size_t>(lane)] = 0; }
  bool has(Lane lane) const noexcept { return !of(lane).empty(); }
  std::size_t size() const noexcept;

 private:
  /// How many of `waiting` calls go into one statement.
  std::size_t share_of(std::size_t waiting) noexcept;
  const std::deque<Waiting>& of(Lane lane) const noexcept {
    return lanes_[static_cast<std::size_t>(lane)];
  }
  std::array<std::deque<Waiting>, lane_count> lanes_;
  std::array<std::size_t, lane_count> under_way_{};
  /// How many reserves and owners' verbs were there together recently.
  std::size_t crowd_ = 0;
};

}  // namespace idem::postgres
