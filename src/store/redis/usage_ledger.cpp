#include "store/redis/usage_ledger.hpp"

#include <idem/limits.hpp>

#include <cstdlib>

namespace idem::redis {
namespace {

void add(UsageChange& sum, const UsageChange& change) {
  sum.active += change.active;
  sum.bytes += change.bytes;
}

}  // namespace

bool UsageLedger::is_due(const Entry& entry, const Quota& quota) {
  if (!entry.is_known) return true;
  const bool is_near = quota.active_keys != 0 || entry.usage.bytes > quota.stored_bytes / 2;
  const Millis age = MonotonicClock::now() - entry.read_at;
  return age >= (is_near ? limits::redis_usage_age_near : limits::redis_usage_age_far);
}

Task<std::optional<StoreError>> UsageLedger::look_at(std::string scope, Quota quota) {
  while (is_due(entries_[scope], quota)) {
    Entry& entry = entries_[scope];
    if (!entry.is_reading) {
      Task<std::optional<StoreError>> reading = read(scope);
      co_return co_await std::move(reading);
    }
    if (entry.is_known) break;  // Old, and another caller is reading it.
    Task<void> pausing = client_.pause();
    co_await std::move(pausing);
  }
  co_return std::nullopt;
}

Task<std::optional<StoreError>> UsageLedger::read(const std::string& scope) {
  Entry& entry = entries_[scope];  // The reference stays valid: entries are never erased.
  entry.is_reading = true;
  const UsageChange before = entry.written;
  std::vector<Question> questions;
  for (std::size_t i = 0; i < bucket_count; ++i) {
    std::string command;
    CommandWriter(command, 4)
        .add("HMGET")
        .add(names_.bucket(i).tag + std::string(usage_hash))
        .add(counter_of_active(scope))
        .add(counter_of_bytes(scope));
    questions.push_back({names_.bucket(i).slot, std::move(command)});
  }
  auto asking = client_.ask_all(std::move(questions));
  const auto all = co_await std::move(asking);
  entry.is_reading = false;
  UsageChange sum;
  for (const QuestionResult& reply : all) {
    if (!reply) co_return to_store_error(reply.error());
    sum.active += std::strtoll(reply->at(0).text.c_str(), nullptr, 10);
    sum.bytes += std::strtoll(reply->at(1).text.c_str(), nullptr, 10);
  }
  // The sum may contain concurrent writes already: better counted twice until the next reading.
  add(sum, difference(before, entry.begun));
  entry.usage.active = plus(0, sum.active);
  entry.usage.bytes = plus(0, sum.bytes);
  entry.read_at = MonotonicClock::now();
  entry.is_known = true;
  co_return std::nullopt;
}

Usage UsageLedger::of(const std::string& scope) const {
  const auto found = entries_.find(scope);
  return found == entries_.end() ? Usage{} : found->second.usage;
}

void UsageLedger::begin(const std::string& scope, const UsageChange& change) {
  const auto found = entries_.find(scope);
  if (found == entries_.end()) return;  // No quota asked for it yet; the first look_at() reads it.
  Entry& entry = found->second;
  add(entry.begun, change);
  entry.usage.active = plus(entry.usage.active, change.active);
  entry.usage.bytes = plus(entry.usage.bytes, change.bytes);
  if (change.next_key) entry.usage.next_key = *change.next_key;
}

void UsageLedger::end(const std::string& scope, const UsageChange& change, bool is_written) {
  const auto found = entries_.find(scope);
  if (found == entries_.end()) return;
  if (is_written) return add(found->second.written, change);
  begin(scope, -change);
}

}  // namespace idem::redis
