#include "metrics/shard.hpp"

#include <algorithm>

namespace idem::metrics {
namespace {

struct OutcomeOf {
  Outcome operator()(const Execute& execute) const noexcept {
    return execute.again ? Outcome::failed_retry : Outcome::created;
  }
  Outcome operator()(const Replay&) const noexcept { return Outcome::replay; }
  Outcome operator()(const InProgress&) const noexcept { return Outcome::in_progress; }
  Outcome operator()(const KeyMisuse&) const noexcept { return Outcome::key_misuse; }
  Outcome operator()(const Unknown&) const noexcept { return Outcome::unknown; }
  Outcome operator()(const Expired&) const noexcept { return Outcome::expired; }
  // Stored and not ended: protocol.md §21 counts it as in progress.
  Outcome operator()(const Pending&) const noexcept { return Outcome::in_progress; }
  Outcome operator()(const QuotaExceeded&) const noexcept { return Outcome::quota_exceeded; }
};

std::size_t bucket_of(Duration took) noexcept {
  const double seconds = std::chrono::duration<double>(took).count();
  const auto bucket = std::lower_bound(bucket_ends.begin(), bucket_ends.end(), seconds);
  return static_cast<std::size_t>(bucket - bucket_ends.begin());
}

}  // namespace

void Histogram::observe(Duration took) noexcept {
  buckets_[bucket_of(took)].add();
  sum_.add(static_cast<std::uint64_t>(std::max(Duration::rep{0}, took.count())));
}

void Histogram::keep_exemplar(const Exemplar& exemplar) {
  const std::lock_guard lock(mutex_);
  exemplars_[bucket_of(exemplar.took)] = exemplar;
}

Histogram::Exemplars Histogram::exemplars() const {
  const std::lock_guard lock(mutex_);
  return exemplars_;
}

Outcome outcome_of(const ReserveOutcome& outcome) noexcept {
  return std::visit(OutcomeOf(), outcome);
}

std::string_view name_of(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::created:
      return "created";
    case Outcome::replay:
      return "replay";
    case Outcome::in_progress:
      return "in_progress";
    case Outcome::key_misuse:
      return "key_misuse";
    case Outcome::failed_retry:
      return "failed_retry";
    case Outcome::unknown:
      return "unknown";
    case Outcome::expired:
      return "expired";
    case Outcome::quota_exceeded:
      return "quota_exceeded";
  }
  return "";
}

std::string_view name_of(Reconciled result) noexcept {
  switch (result) {
    case Reconciled::scheduled:
      return "scheduled";
    case Reconciled::resolved:
      return "resolved";
    case Reconciled::failed:
      return "failed";
  }
  return "";
}

}  // namespace idem::metrics
