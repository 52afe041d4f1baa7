#include "metrics/samples.hpp"

#include <idem/console_limits.hpp>

#include <algorithm>
#include <numeric>

namespace idem::metrics {
namespace {

HistogramSum between(const HistogramSum& before, const HistogramSum& after) {
  HistogramSum difference;
  for (std::size_t i = 0; i < difference.buckets.size(); ++i) {
    difference.buckets[i] = after.buckets[i] - before.buckets[i];
  }
  difference.seconds = after.seconds - before.seconds;
  return difference;
}

std::optional<double> milliseconds(std::optional<double> seconds) {
  if (!seconds) return std::nullopt;
  return *seconds * 1'000;
}

std::optional<double> mean(const HistogramSum& histogram) {
  const auto count =
      std::accumulate(histogram.buckets.begin(), histogram.buckets.end(), std::uint64_t{0});
  if (count == 0) return std::nullopt;
  return histogram.seconds / static_cast<double>(count);
}

template <class T>
std::optional<T> greater(std::optional<T> a, std::optional<T> b) {
  return a && b ? std::max(a, b) : a ? a : b;
}

Levels worse(const Levels& a, const Levels& b) {
  return {.store_answers = a.store_answers && b.store_answers,
          .unknown = greater(a.unknown, b.unknown),
          .oldest_unknown_seconds = greater(a.oldest_unknown_seconds, b.oldest_unknown_seconds),
          .waiting_messages = greater(a.waiting_messages, b.waiting_messages),
          .oldest_message_seconds = greater(a.oldest_message_seconds, b.oldest_message_seconds),
          .dead_letters = greater(a.dead_letters, b.dead_letters),
          .reap_seconds = greater(a.reap_seconds, b.reap_seconds)};
}

}  // namespace

Sample Samples::running(const Ring& ring, const Totals& totals, const Levels& levels, Time now) {
  Sample sample;
  sample.end = now;
  // A clock that was set back makes no span of less than nothing.
  sample.length = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::max(now - ring.since, Time::duration::zero()));
  sample.requests = totals.answers - ring.before.answers;
  sample.server_errors = totals.server_errors - ring.before.server_errors;
  sample.store_errors = totals.store_errors - ring.before.store_errors;
  for (std::size_t i = 0; i < outcome_count; ++i) {
    sample.reserves[i] = totals.reserves[i] - ring.before.reserves[i];
  }
  const HistogramSum reserve = between(ring.before.reserve, totals.reserve);
  const auto reserving = mean(reserve);
  const auto settling = mean(between(ring.before.settle, totals.settle));
  if (reserving && settling) sample.added_ms = (*reserving + *settling) * 1'000;
  sample.reserve_p99_ms = milliseconds(quantile(reserve, 0.99));
  sample.upstream_p50_ms =
      milliseconds(quantile(between(ring.before.upstream, totals.upstream), 0.5));
  sample.levels = worse(ring.worst, levels);
  return sample;
}

void Samples::end(Ring& ring, const Totals& totals, const Levels& levels, Time now,
                  std::size_t most) {
  ring.ended.push_back(running(ring, totals, levels, now));
  if (ring.ended.size() > most) ring.ended.pop_front();
  ring.since = now;
  ring.before = totals;
  ring.worst = {};
}

std::vector<Sample> Samples::all(const Ring& ring, const Totals& totals, const Levels& levels,
                                 Time now) {
  std::vector<Sample> samples(ring.ended.begin(), ring.ended.end());
  samples.push_back(running(ring, totals, levels, now));
  return samples;
}

void Samples::add(const Totals& totals, const Levels& levels, Time now) {
  end(hour_, totals, levels, now, limits::samples_of_hour);
  day_.worst = worse(day_.worst, levels);
  if (++short_ones_ % limits::samples_short_per_long == 0) {
    end(day_, totals, levels, now, limits::samples_of_day);
  }
}

std::vector<Sample> Samples::hour(const Totals& totals, const Levels& levels, Time now) const {
  return all(hour_, totals, levels, now);
}

std::vector<Sample> Samples::day(const Totals& totals, const Levels& levels, Time now) const {
  return all(day_, totals, levels, now);
}

}  // namespace idem::metrics
