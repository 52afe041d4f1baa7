#pragma once

#include "loop/loop.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace idem {

/// A loop completes a turn in a millisecond, and in a few hundred under the heaviest load measured.
/// A gateway whose loop has stood still for the first time should get no further requests. After
/// the second a restart costs less than it saves: no bound of ours holds a loop for so long, and
/// what stands still for so long has not been seen to go on.
inline constexpr Millis loop_stalled_ready{5'000};
inline constexpr Millis loop_stalled_live{15'000};

/// Sees from one loop whether others still turn. The time in which the watching loop itself did not
/// run counts at most as its own tick took: a process that was stopped, or a machine that slept,
/// has no loop that stands still. Loop's thread only; the watched loops outlive it.
class LoopWatch final : public Timed {
 public:
  struct Watched {
    std::string name;  ///< For people.
    const Loop* loop;
    bool serves_clients;
  };
  struct Standstill {
    std::string name;
    Millis lasting;
  };

  LoopWatch(Loop& from, const std::vector<Watched>& watched);
  /// Of a gateway: the loops of the client listener, and that of stored requests.
  LoopWatch(Loop& from, const std::vector<std::unique_ptr<Loop>>& of_clients, const Loop& stored);

  void tick(MonotonicTime now) override;

  /// How long the loop that has stood still for longest has done so.
  Millis longest() const;
  /// The loop that has not completed a turn for longest, if that is `least` or more.
  std::optional<Standstill> longest(Millis least, bool only_of_clients) const;

 private:
  struct Seen {
    Watched watched;
    std::uint64_t ticks = 0;
    Millis stalled_for{0};
  };
  std::vector<Seen> seen_;
  MonotonicTime last_;
};

}  // namespace idem
