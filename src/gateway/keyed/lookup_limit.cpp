#include "gateway/keyed/lookup_limit.hpp"
#include <idem/worker_limits.hpp>

#include <algorithm>

namespace idem::gateway {

double LookupLimit::tokens_at(const Bucket& bucket, MonotonicTime now) noexcept {
  const double seconds = std::chrono::duration<double>(now - bucket.at).count();
  return std::min(limits::lookups_at_once, bucket.tokens + seconds * limits::lookups_per_second);
}

// At most once a second: with many scopes, a look-up must not walk over all of them each time.
void LookupLimit::forget_rested(MonotonicTime now) {
  if (now - forgotten_at_ < Millis(1000)) return;
  forgotten_at_ = now;
  std::erase_if(buckets_, [&](const auto& one) {
    return tokens_at(one.second, now) >= limits::lookups_at_once;
  });
}

std::optional<Millis> LookupLimit::take(const std::string& scope, MonotonicTime now) {
  constexpr Millis one_token(static_cast<Millis::rep>(1000 / limits::lookups_per_second));
  const std::lock_guard lock(mutex_);
  auto found = buckets_.find(scope);
  if (found == buckets_.end()) {
    if (buckets_.size() >= limits::lookup_scopes_max) forget_rested(now);
    if (buckets_.size() >= limits::lookup_scopes_max) return Millis(1000);
    found = buckets_.try_emplace(scope, Bucket{limits::lookups_at_once, now}).first;
  }
  Bucket& bucket = found->second;
  const double tokens = tokens_at(bucket, now);
  bucket = {tokens, now};
  if (tokens < 1) return one_token;
  bucket.tokens = tokens - 1;
  return std::nullopt;
}

}  // namespace idem::gateway
