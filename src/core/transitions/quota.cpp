#include "core/transitions/quota.hpp"

#include <idem/limits.hpp>

#include <algorithm>

namespace idem {
namespace {

using std::chrono::microseconds;

microseconds since_epoch(StoreTime now) { return now.time_since_epoch(); }

Millis until_one_ends(const Usage& usage, Millis retention) {
  const auto keys = static_cast<std::int64_t>(std::max<std::uint64_t>(usage.active, 1));
  return std::clamp<Millis>(retention / keys, limits::quota_retry_min, limits::quota_retry_max);
}

}  // namespace

UsageChange usage_of(const Record& record) noexcept {
  const bool is_active = record.charged != 0 && record.state != State::expired;
  return {.active = is_active ? 1 : 0, .bytes = static_cast<std::int64_t>(record.charged)};
}

UsageChange difference(const UsageChange& before, const UsageChange& after) noexcept {
  return {.active = after.active - before.active, .bytes = after.bytes - before.bytes};
}

std::variant<Admitted, QuotaExceeded> admit(const Quota& quota, const Usage& usage,
                                            Millis retention, StoreTime now) noexcept {
  const bool has_room =
      (quota.active_keys == 0 || usage.active < quota.active_keys) &&
      (quota.stored_bytes == 0 || usage.bytes + limits::record_charge <= quota.stored_bytes);
  if (!has_room) return QuotaExceeded{until_one_ends(usage, retention)};
  if (quota.new_key_interval == microseconds::zero()) return Admitted{};
  const microseconds due = std::max(usage.next_key, since_epoch(now));
  const microseconds ahead = quota.new_key_interval * (quota.new_keys_at_once - 1);
  const microseconds wait = due - ahead - since_epoch(now);
  if (wait > microseconds::zero()) {
    return QuotaExceeded{std::max(std::chrono::ceil<Millis>(wait), Millis(1))};
  }
  return Admitted{due + quota.new_key_interval};
}

std::optional<QuotaExceeded> refuse_growth(const Quota& quota, const Usage& usage,
                                           std::uint64_t bytes, Millis retention) noexcept {
  // A quota without room for any record (no_room) applies to new keys only.
  if (quota.stored_bytes < limits::record_charge) return std::nullopt;
  if (usage.bytes + bytes <= quota.stored_bytes) return std::nullopt;
  return QuotaExceeded{until_one_ends(usage, retention)};
}

std::uint64_t plus(std::uint64_t now, std::int64_t change) noexcept {
  if (change >= 0) return now + static_cast<std::uint64_t>(change);
  return now - std::min(now, std::uint64_t{0} - static_cast<std::uint64_t>(change));
}

Usage UsageBook::of(const std::string& scope) const {
  const auto found = scopes_.find(scope);
  return found == scopes_.end() ? Usage{} : found->second;
}

Usage UsageBook::add(const std::string& scope, const UsageChange& change) {
  Usage& usage = scopes_[scope];
  usage.active = plus(usage.active, change.active);
  usage.bytes = plus(usage.bytes, change.bytes);
  if (change.next_key) usage.next_key = *change.next_key;
  const Usage is = usage;
  if (is.active == 0 && is.bytes == 0 && !change.next_key) scopes_.erase(scope);
  return is;
}

}  // namespace idem
