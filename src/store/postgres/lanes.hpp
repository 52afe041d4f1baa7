#pragma once

#include <idem/record.hpp>
#include <idem/store.hpp>

#include <deque>
#include <vector>

/// What waits in front of the connections. The loop's thread only.
namespace idem::postgres {

struct Waiting {
  StoreCall call;
  StoreCompletion done;
  MonotonicTime since;
  /// It was sent once, and the connection was lost before the answer.
  bool in_doubt = false;
  /// A statement that it was in was refused: it is asked alone, so that it spoils no other's.
  bool alone = false;
};

/// Calls that one statement can ask together have a lane in common. Reserves and owners' verbs are
/// apart because nobody's settling shall wait behind new work.
enum class Lane : std::uint8_t { reserves, owners, finds, others };
inline constexpr std::size_t lane_count = 4;
Lane lane_of(const StoreCall& call) noexcept;

/// Safe to ask twice: the second time answers as the first did (§4), or reads.
bool may_be_repeated(const StoreCall& call) noexcept;

/// The record that it is about; none: the call is asked alone.
const RecordId* record_of(const StoreCall& call) noexcept;

class Lanes {
 public:
  void add(Waiting waiting);
  /// What is asked again, before all that came later.
  void put_back(std::vector<Waiting> calls);
  /// Up to `most` calls of `lane` for one statement, in the order of their records and, of one
  /// record, of their coming. Of owners' verbs each is of another record: a second one waits.
  /// Of a crowd it takes half: while those are settled the others are reserved, and both lanes have
  /// work at any time. All at once would go from lane to lane together.
  std::vector<Waiting> take(Lane lane, std::size_t most);
  /// What was taken has been answered.
  void settle(Lane lane) { under_way_[static_cast<std::size_t>(lane)] = 0; }
  bool has(Lane lane) const noexcept { return !of(lane).empty(); }
  std::size_t size() const noexcept;

 private:
  /// How many of `waiting` go into one statement.
  std::size_t share_of(std::size_t waiting) noexcept;
  const std::deque<Waiting>& of(Lane lane) const noexcept {
    return lanes_[static_cast<std::size_t>(lane)];
  }
  std::array<std::deque<Waiting>, lane_count> lanes_;
  std::array<std::size_t, lane_count> under_way_{};
  /// Reserves and owners' verbs at once, of late.
  std::size_t crowd_ = 0;
};

}  // namespace idem::postgres
