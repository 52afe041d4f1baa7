#include "loop/loop_watch.hpp"

#include <algorithm>

namespace idem {

LoopWatch::LoopWatch(Loop& from, const std::vector<Watched>& watched)
    : Timed(from), last_(MonotonicClock::now()) {
  for (const Watched& one : watched) seen_.push_back({one, one.loop->ticks()});
}

LoopWatch::LoopWatch(Loop& from, const std::vector<std::unique_ptr<Loop>>& of_clients,
                     const Loop& stored)
    : LoopWatch(from, {}) {
  for (const auto& loop : of_clients) {
    const std::string name = "Loop " + std::to_string(seen_.size() + 1) + " of " +
                             std::to_string(of_clients.size()) + " of the client listener";
    seen_.push_back({{name, loop.get(), true}, loop->ticks()});
  }
  seen_.push_back({{"The loop of stored requests", &stored, false}, stored.ticks()});
}

void LoopWatch::tick(MonotonicTime now) {
  const Millis passed = std::min<Millis>(now - last_, 4 * Loop::tick_interval);
  last_ = now;
  for (Seen& one : seen_) {
    const std::uint64_t ticks = one.watched.loop->ticks();
    one.stalled_for = ticks == one.ticks ? one.stalled_for + passed : Millis(0);
    one.ticks = ticks;
  }
}

Millis LoopWatch::longest() const {
  Millis longest{0};
  for (const Seen& one : seen_) longest = std::max(longest, one.stalled_for);
  return longest;
}

std::optional<LoopWatch::Standstill> LoopWatch::longest(Millis least, bool only_of_clients) const {
  const Seen* longest = nullptr;
  for (const Seen& one : seen_) {
    if (one.stalled_for < least || (only_of_clients && !one.watched.serves_clients)) continue;
    if (longest == nullptr || one.stalled_for > longest->stalled_for) longest = &one;
  }
  if (longest == nullptr) return std::nullopt;
  return Standstill{longest->watched.name, longest->stalled_for};
}

}  // namespace idem
