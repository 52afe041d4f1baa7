#include "store/usage_view.hpp"

#include <idem/limits.hpp>

namespace idem {
namespace {

void add(UsageChange& sum, const UsageChange& change) {
  sum.active += change.active;
  sum.bytes += change.bytes;
}

}  // namespace

UsageView::Need UsageView::need(const std::string& scope, const Quota& quota) {
  const Entry& entry = entries_[scope];
  if (entry.is_known) {
    const bool is_near = quota.active_keys != 0 || entry.usage.bytes > quota.stored_bytes / 2;
    const Millis age = MonotonicClock::now() - entry.read_at;
    if (age < (is_near ? limits::store_usage_age_near : limits::store_usage_age_far)) {
      return Need::none;
    }
  }
  if (!entry.is_reading) return Need::read;
  return entry.is_known ? Need::none : Need::wait;  // Old, and another caller is reading it.
}

UsageChange UsageView::begin_reading(const std::string& scope) {
  Entry& entry = entries_[scope];
  entry.is_reading = true;
  return entry.written;
}

void UsageView::end_reading(const std::string& scope, const UsageChange& before,
                            std::optional<UsageChange> counters) {
  Entry& entry = entries_[scope];
  entry.is_reading = false;
  if (!counters) return;
  UsageChange sum = *counters;
  // The sum may contain concurrent writes already: better counted twice until the next reading.
  add(sum, difference(before, entry.begun));
  entry.usage.active = plus(0, sum.active);
  entry.usage.bytes = plus(0, sum.bytes);
  entry.read_at = MonotonicClock::now();
  entry.is_known = true;
}

Usage UsageView::of(const std::string& scope) const {
  const auto found = entries_.find(scope);
  return found == entries_.end() ? Usage{} : found->second.usage;
}

void UsageView::begin(const std::string& scope, const UsageChange& change) {
  const auto found = entries_.find(scope);
  if (found == entries_.end()) return;  // No quota asked for it yet; the first reading shows it.
  Entry& entry = found->second;
  add(entry.begun, change);
  entry.usage.active = plus(entry.usage.active, change.active);
  entry.usage.bytes = plus(entry.usage.bytes, change.bytes);
  if (change.next_key) entry.usage.next_key = *change.next_key;
}

void UsageView::end(const std::string& scope, const UsageChange& change, bool is_written) {
  const auto found = entries_.find(scope);
  if (found == entries_.end()) return;
  if (is_written) return add(found->second.written, change);
  begin(scope, -change);
}

}  // namespace idem
