#pragma once

#include "gateway/scope_shares.hpp"

#include <idem/record.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace idem::gateway {

/// Claimed requests that wait in memory for a place. A free place goes to the tenant that has
/// the fewest, among equals to the one that was served the longest ago. It does not go to the
/// oldest request, because a store hands those out first. A tenant has its share of the held
/// requests (scope_shares.hpp). One thread.
template <class Work>
class DispatchTurns {
 public:
  /// Nothing: held. Otherwise there is no room, and it comes back.
  std::optional<Work> hold(const std::string& queue, const std::string& scope, Work work,
                           MonotonicTime until) {
    if (!shares_.take(scope)) return work;
    auto line = std::ranges::find_if(
        lines_, [&](const Line& one) { return one.queue == queue && one.scope == scope; });
    if (line == lines_.end()) line = lines_.insert(lines_.end(), Line{queue, scope, {}});
    line->held.push_back({std::move(work), until});
    return std::nullopt;
  }

  bool holds_any(const std::string& queue, const std::string& scope) const {
    return std::ranges::any_of(
        lines_, [&](const Line& one) { return one.queue == queue && one.scope == scope; });
  }
  std::size_t held() const noexcept { return shares_.taken(); }

  /// The next in turn. `places(work)`: how many places its tenant has, none where it may not have
  /// another one now.
  template <class Places>
  std::optional<Work> next(Places places) {
    auto best = lines_.end();
    std::size_t fewest = 0;
    for (auto line = lines_.begin(); line != lines_.end(); ++line) {
      const std::optional<std::size_t> has = places(line->held.front().work);
      if (!has || (best != lines_.end() && *has >= fewest)) continue;
      best = line;
      fewest = *has;
    }
    if (best == lines_.end()) return std::nullopt;
    return take(best);
  }

  /// One that has waited for too long.
  std::optional<Work> overdue(MonotonicTime now) {
    const auto late = std::ranges::find_if(
        lines_, [&](const Line& one) { return one.held.front().until <= now; });
    if (late == lines_.end()) return std::nullopt;
    return take(late);
  }

 private:
  struct Held {
    Work work;
    MonotonicTime until;
  };
  struct Line {
    std::string queue;
    std::string scope;
    std::deque<Held> held;  ///< Never empty.
  };

  // Behind all others from then on.
  Work take(typename std::list<Line>::iterator line) {
    Work work = std::move(line->held.front().work);
    line->held.pop_front();
    shares_.give_back(line->scope);
    if (line->held.empty()) {
      lines_.erase(line);
    } else {
      lines_.splice(lines_.end(), lines_, line);
    }
    return work;
  }

  ScopeShares shares_{limits::async_held_max};
  std::list<Line> lines_;  ///< The one that was served the longest ago comes first.
};

/// How long a request rests that finds no place: until the requests of its tenant that were put
/// back before it may have run. One thread.
class DispatchBacklogs {
 public:
  /// `each`: how long one of them delays the others; `dice` from 0 to 1.
  Millis rest(const std::string& tenant, Millis each, MonotonicTime now, double dice);

 private:
  std::unordered_map<std::string, MonotonicTime> done_at_;
};

}  // namespace idem::gateway
