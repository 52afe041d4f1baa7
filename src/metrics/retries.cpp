#include "metrics/retries.hpp"

#include <algorithm>
#include <atomic>

namespace idem::metrics {

Retry& Retries::Ring::next() {
  if (kept_.size() < limits::retries_kept_of_stripe) return kept_.emplace_back();
  Retry& oldest = kept_[next_];
  next_ = (next_ + 1) % kept_.size();
  return oldest;
}

Retry* Retries::Ring::numbered(std::uint64_t number) {
  const auto found = std::ranges::find(kept_, number, &Retry::number);
  return found == kept_.end() ? nullptr : &*found;
}

Retries::Stripe& Retries::mine() noexcept {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t number = threads.fetch_add(1);
  return stripes_[number % stripes_.size()];
}

std::uint64_t Retries::note(const Seen& seen) {
  const auto now = std::chrono::system_clock::now();
  const bool is_harmless = seen.outcome == Outcome::replay || seen.outcome == Outcome::in_progress;
  Stripe& stripe = mine();
  const std::lock_guard lock(stripe.mutex);
  Retry& place = (is_harmless ? stripe.harmless : stripe.others).next();
  place.number = ++stripe.noted;
  place.at = now;
  place.id = seen.id;
  place.outcome = seen.outcome;
  place.status = seen.status;
  place.scope = seen.scope;
  place.route = seen.route;
  place.client = seen.client;
  place.differences.clear();
  place.why.clear();
  return place.number;
}

void Retries::differ(std::uint64_t number, std::vector<Explanation::Difference> differences,
                     std::string why) {
  Stripe& stripe = mine();
  const std::lock_guard lock(stripe.mutex);
  Retry* const found = stripe.others.numbered(number);
  if (found == nullptr) return;
  found->differences = std::move(differences);
  found->why = std::move(why);
}

std::vector<Retry> Retries::newest(const Which& which, std::size_t most) const {
  std::vector<Retry> found;
  const auto take = [&](const Retry& one) {
    if (which.id && one.id != *which.id) return;
    if (!which.outcome || one.outcome == *which.outcome) found.push_back(one);
  };
  for (const Stripe& stripe : stripes_) {
    const std::lock_guard lock(stripe.mutex);
    stripe.harmless.each(take);
    stripe.others.each(take);
  }
  std::ranges::sort(found, std::ranges::greater(), &Retry::at);
  if (found.size() > most) found.resize(most);
  return found;
}

}  // namespace idem::metrics
