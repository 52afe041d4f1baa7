#include "metrics/registry.hpp"

#include "metrics/samples.hpp"

#include <algorithm>

namespace idem::metrics {
namespace {

/// The sum of one metric over all shards.
template <class Of>
std::uint64_t sum(const std::deque<Shard>& shards, Of of) {
  std::uint64_t total = 0;
  for (const Shard& shard : shards) total += of(shard);
  return total;
}

std::uint64_t sum(const std::deque<Shard>& shards, Counter Shard::* counter) {
  return sum(shards, [&](const Shard& shard) { return (shard.*counter).value(); });
}

HistogramSum sum(const std::deque<Shard>& shards, Histogram Shard::* histogram) {
  HistogramSum total;
  for (const Shard& shard : shards) {
    const Histogram& one = shard.*histogram;
    const auto exemplars = one.exemplars();
    for (std::size_t i = 0; i < total.buckets.size(); ++i) {
      total.buckets[i] += one.in_bucket(i);
      auto& newest = total.exemplars[i];
      if (exemplars[i] && (!newest || newest->at < exemplars[i]->at)) newest = exemplars[i];
    }
    total.seconds += std::chrono::duration<double>(one.sum()).count();
  }
  return total;
}

void write_protocol_counters(Text& text, const std::deque<Shard>& shards) {
  text.family("idem_reserve_total", "counter",
              "api.idempotency.reserve: reserves by their outcome.");
  for (std::size_t i = 0; i < outcome_count; ++i) {
    text.sample("idem_reserve_total", "outcome", name_of(static_cast<Outcome>(i)),
                sum(shards, [i](const Shard& shard) { return shard.reserves[i].value(); }));
  }
  text.family("idem_release_total", "counter",
              "api.idempotency.release: attempts that ended as not executed, by basis.");
  for (const auto basis : {ReleaseBasis::proven, ReleaseBasis::declared}) {
    const auto at = static_cast<std::size_t>(basis);
    text.sample("idem_release_total", "basis", idem::name_of(basis),
                sum(shards, [at](const Shard& shard) { return shard.releases[at].value(); }));
  }
  text.family(
      "idem_reconcile_total", "counter",
      "api.idempotency.reconcile: unknown records scheduled for a question, resolved by evidence, "
      "and failed: refused evidence or given up.");
  for (std::size_t i = 0; i < reconciled_count; ++i) {
    text.sample("idem_reconcile_total", "result", name_of(static_cast<Reconciled>(i)),
                sum(shards, [i](const Shard& shard) { return shard.reconciled[i].value(); }));
  }
  text.single("idem_contradictions_total", "counter",
              "api.idempotency.contradictions: evidence that contradicts the record: its attempt "
              "ran although another one has the record, or ended differently.",
              sum(shards, &Shard::contradictions));
  text.single("idem_foreign_events_total", "counter",
              "api.idempotency.foreign_events: events of a provider other than the one that is "
              "asked about their record.",
              sum(shards, &Shard::foreign_events));
  text.single("idem_store_errors_total", "counter",
              "api.idempotency.store.errors: calls that the store did not answer.",
              sum(shards, &Shard::store_errors));
  text.single("idem_ttl_pruned_total", "counter",
              "api.idempotency.ttl.pruned: bodies, released records and tombstones dropped.",
              sum(shards, &Shard::pruned));
  text.single(
      "idem_keys_like_personal_data_total", "counter",
      "api.idempotency.keys.personal: keys that look like an e-mail address, a phone number "
      "or a card number.",
      sum(shards, &Shard::personal_keys));
}

void write_histogram(Text& text, std::string_view name, std::string_view help,
                     const HistogramSum& histogram) {
  text.family(name, "histogram", help);
  text.histogram(name, histogram);
}

void write_times(Text& text, const std::deque<Shard>& shards) {
  write_histogram(text, "idem_reserve_seconds",
                  "api.idempotency.reserve.duration: the store's answer to a reserve.",
                  sum(shards, &Shard::reserve));
  write_histogram(text, "idem_settle_seconds",
                  "api.idempotency.settle.duration: the write that makes an outcome durable.",
                  sum(shards, &Shard::settle));
  const HistogramSum upstream = sum(shards, &Shard::upstream);
  write_histogram(
      text, "idem_upstream_seconds",
      "api.idempotency.upstream.duration: from the first byte sent to the whole answer.", upstream);
  write_histogram(text, "idem_request_seconds",
                  "api.idempotency.request.duration: from a keyed request's head to its answer.",
                  sum(shards, &Shard::request));
  if (const auto p99 = quantile(upstream, 0.99)) {
    // protocol.md §21. Not less, because a lease that ends early makes the record unknown.
    constexpr double factor = 3;
    text.single("idem_suggested_lease_seconds", "gauge",
                "api.idempotency.lease.suggested: three times the 99th percentile of the upstream.",
                factor * *p99);
  }
}

void write_census(Text& text, const Census& census) {
  text.family("idem_keys", "gauge", "api.idempotency.keys: records by state, as they are stored.");
  for (const auto state : {State::pending, State::in_progress, State::completed,
                           State::failed_retryable, State::unknown, State::expired}) {
    text.sample("idem_keys", "state", idem::name_of(state),
                census.by_state[static_cast<std::size_t>(state)]);
  }
  const auto age = census.oldest_unknown ? census.now - *census.oldest_unknown : Millis(0);
  text.single("idem_oldest_unknown_age_seconds", "gauge",
              "api.idempotency.unknown.oldest: how long the oldest unknown record has been waiting "
              "for evidence; 0 where there is none.",
              std::chrono::duration<double>(age).count());
}

// A reaper that is stuck, or whose store does not answer, looks like one that falls behind.
std::optional<std::chrono::duration<double>> reap_age_of(const std::deque<Shard>& shards) {
  std::optional<Moment::Point> since;
  for (const Shard& shard : shards) {
    const auto its = shard.reap_due_since.value();
    if (its) since = std::min(since.value_or(*its), *its);
  }
  if (!since) return std::nullopt;
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - *since;
  return std::max(age, std::chrono::duration<double>::zero());
}

void write_reaping(Text& text, const std::deque<Shard>& shards) {
  const auto age = reap_age_of(shards);
  if (!age) return;
  text.single(
      "idem_reap_oldest_due_age_seconds", "gauge",
      "api.idempotency.reap.oldest: how long, at most, an answer or tombstone has been due for "
      "the reaper.",
      age->count());
}

// A worker that stands still, or whose store never answers, makes no more of them.
void write_turns(Text& text, const std::deque<Shard>& shards, bool has_reconciler) {
  text.family("idem_worker_turns_total", "counter",
              "api.idempotency.worker.turns: turns of background work: \"lifecycle\" sweeps and "
              "reaps, \"reconciler\" asks providers.");
  text.sample("idem_worker_turns_total", "worker", "lifecycle",
              sum(shards, &Shard::lifecycle_turns));
  if (!has_reconciler) return;
  text.sample("idem_worker_turns_total", "worker", "reconciler",
              sum(shards, [](const Shard& shard) { return shard.reconciler_turns.load(); }));
}

void write_disks(Text& text, const std::deque<Registry::Disk>& disks) {
  text.family("idem_disk_free_bytes", "gauge",
              "api.idempotency.disk.free: room on the disk of the store, and of large bodies.");
  for (const Registry::Disk& disk : disks) {
    const std::int64_t free = disk.free_bytes.load(std::memory_order_relaxed);
    if (free >= 0) {
      text.sample("idem_disk_free_bytes", "of", disk.of, static_cast<std::uint64_t>(free));
    }
  }
}

void write_clock(Text& text, const Registry::Clock& clock) {
  if (clock.was_seen) {
    text.single("idem_clock_synchronised", "gauge",
                "api.idempotency.clock.synchronised: 1 if the kernel regards this machine's clock "
                "as synchronised, otherwise 0.",
                std::uint64_t{clock.is_synchronised});
  }
  const Millis ahead{clock.ahead.load()};
  if (ahead == Millis(Registry::Clock::not_known)) return;
  text.single("idem_clock_ahead_seconds", "gauge",
              "api.idempotency.clock.ahead: how far this machine's clock is before the store's; "
              "less than 0: it is behind.",
              std::chrono::duration<double>(ahead).count());
}

void write_tenants(Text& text, const std::deque<Shard>& shards, const Tenants& tenants) {
  text.family(
      "idem_duplicates_total", "counter",
      "api.idempotency.duplicates: reserves that found a record, by tenant; those beyond the "
      "first tenants seen are \"other\".");
  const std::size_t count = tenants.count();
  for (std::size_t i = 0; i < count; ++i) {
    text.sample("idem_duplicates_total", "tenant", tenants.label(i),
                sum(shards, [i](const Shard& shard) { return shard.duplicates[i].value(); }));
  }
}

/// Destinations of stored messages, and configured ones without any.
using Destinations = std::vector<std::string>;

Destinations destinations_of(const Gauges& gauges) {
  Destinations names = gauges.destinations;
  for (const MessageCount& count : *gauges.messages) {
    const bool is_new = std::ranges::find(names, count.destination) == names.end();
    if (is_new && names.size() < limits::metric_tenants_max) names.push_back(count.destination);
  }
  return names;
}

/// One family about the messages of a state, by destination.
template <class Number>
void write_messages(Text& text, const Gauges& gauges, const Destinations& names, MessageState state,
                    std::string_view name, std::string_view help, Number number_of) {
  text.family(name, "gauge", help);
  for (const std::string& destination : names) {
    const auto found = std::ranges::find_if(*gauges.messages, [&](const MessageCount& count) {
      return count.state == state && count.destination == destination;
    });
    const bool has_some = found != gauges.messages->end();
    text.sample(name, "destination", destination, has_some ? number_of(*found) : 0);
  }
}

void write_outbox(Text& text, const Gauges& gauges) {
  const Destinations names = destinations_of(gauges);
  const auto messages = [](const MessageCount& count) { return count.messages; };
  const auto age = [](const MessageCount& count) {
    return static_cast<std::uint64_t>(std::max(count.oldest_age, Millis(0)).count() / 1'000);
  };
  write_messages(text, gauges, names, MessageState::waiting, "idem_outbox_messages",
                 "api.idempotency.outbox.depth: messages that are not delivered yet.", messages);
  write_messages(text, gauges, names, MessageState::waiting, "idem_outbox_oldest_age_seconds",
                 "api.idempotency.outbox.oldest: how old the oldest of them is.", age);
  write_messages(text, gauges, names, MessageState::dead, "idem_dead_letters",
                 "api.idempotency.dead.letters: messages that were given up, until an operator "
                 "redrives or discards them.",
                 messages);
}

void write_answers(Text& text, const std::deque<Shard>& shards,
                   const std::vector<std::string>& routes) {
  text.family("idem_answers_total", "counter",
              "api.idempotency.answers: answers to clients by route and status; \"none\": the "
              "client closed the connection before.");
  for (std::size_t route = 0; route < routes.size(); ++route) {
    for (std::size_t status = 0; status < status_places; ++status) {
      const auto count =
          sum(shards, [&](const Shard& shard) { return shard.answers[route][status].value(); });
      if (count == 0 && !is_usual(status)) continue;
      text.sample("idem_answers_total",
                  {{"route", routes[route]}, {"status", status_label(status)}}, count);
    }
  }
}

/// Only where a route is in shadow, or was.
void write_shadow(Text& text, const std::vector<Shadow::Counted>& routes) {
  if (routes.empty()) return;
  text.family("idem_shadow_total", "counter",
              "api.idempotency.shadow: requests of routes with enforce: shadow, by what the rules "
              "for keys would have done.");
  for (const auto& [route, counts, not_settled] : routes) {
    for (std::size_t i = 0; i < shadowed_count; ++i) {
      text.sample("idem_shadow_total",
                  {{"route", route}, {"decision", name_of(static_cast<Shadowed>(i))}},
                  counts.by_decision[i]);
    }
  }
  text.family("idem_shadow_unknown_total", "counter",
              "api.idempotency.shadow.unknown: attempts of such routes whose outcome would be "
              "unknown.");
  for (const auto& one : routes) {
    text.sample("idem_shadow_unknown_total", "route", one.route, one.counts.unknown);
  }
  text.family("idem_shadow_not_settled_total", "counter",
              "api.idempotency.shadow.not.settled: attempts of such routes whose end the store did "
              "not take: a later retry counts as a first request.");
  for (const auto& one : routes) {
    text.sample("idem_shadow_not_settled_total", "route", one.route, one.not_settled);
  }
}

void write_upstream(Text& text, const std::deque<Shard>& shards, const Availability::Seen& seen) {
  text.family("idem_upstream_requests_total", "counter",
              "api.idempotency.upstream.requests: requests to the upstream by result.");
  for (std::size_t i = 0; i < forwarded_count; ++i) {
    text.sample("idem_upstream_requests_total", "result", name_of(static_cast<Forwarded>(i)),
                sum(shards, [i](const Shard& shard) { return shard.forwarded[i].value(); }));
  }
  text.family(
      "idem_upstream_connect_failures_total", "counter",
      "api.idempotency.upstream.connect.failures: requests without a connection, by reason.");
  for (std::size_t i = 0; i < not_reached_count; ++i) {
    text.sample("idem_upstream_connect_failures_total", "reason",
                name_of(static_cast<NotReached>(i)),
                sum(shards, [i](const Shard& shard) { return shard.not_reached[i].value(); }));
  }
  text.single("idem_upstream_up", "gauge",
              "api.idempotency.upstream.up: 1; 0 from when it could not be reached, or failed to "
              "answer several requests in a row, until it answers again.",
              std::uint64_t{!seen.is_down});
}

void write_authorizer(Text& text, const std::deque<Shard>& shards, const Availability::Seen& seen) {
  text.family("idem_authorize_requests_total", "counter",
              "api.idempotency.authorize.requests: questions to the authoriser by its answer; "
              "\"failed\": it gave none.");
  for (std::size_t i = 0; i < authorized_count; ++i) {
    text.sample("idem_authorize_requests_total", "result", name_of(static_cast<Authorized>(i)),
                sum(shards, [i](const Shard& shard) { return shard.authorized[i].value(); }));
  }
  text.single("idem_authorize_up", "gauge",
              "api.idempotency.authorize.up: 1; 0 from when it failed to answer several questions "
              "in a row, or could not be reached, until it answers again.",
              std::uint64_t{!seen.is_down});
}

using Providers = std::vector<Registry::NamedProvider>;

/// A family of counters with two labels, the provider's name and one of an enumeration.
template <class Kind, std::size_t count>
void write_by_provider(
    Text& text, const Providers& providers, std::string_view name, std::string_view help,
    std::string_view label,
    const std::array<std::atomic<std::uint64_t>, count> ProviderCounts::* counters) {
  text.family(name, "counter", help);
  for (const auto& [provider, counts] : providers) {
    for (std::size_t i = 0; i < count; ++i) {
      text.sample(name, {{"provider", provider}, {label, name_of(static_cast<Kind>(i))}},
                  ((*counts).*counters)[i].load(std::memory_order_relaxed));
    }
  }
}

void write_providers(Text& text, const Providers& providers, MonotonicTime now,
                     MonotonicTime began) {
  write_by_provider<Answered>(
      text, providers, "idem_provider_answers_total",
      "api.idempotency.provider.answers: answered questions about unknown records, by finding.",
      "result", &ProviderCounts::answers);
  write_by_provider<Unanswered>(text, providers, "idem_provider_failures_total",
                                "api.idempotency.provider.failures: questions without a usable "
                                "answer, by reason; \"status\": "
                                "an error status that no rule matches.",
                                "reason", &ProviderCounts::failures);
  text.family("idem_provider_up", "gauge",
              "api.idempotency.provider.up: 1; 0 while it is not asked after failures in a row.");
  for (const auto& [provider, counts] : providers) {
    text.sample("idem_provider_up", "provider", provider, std::uint64_t{!counts->is_left_alone});
  }
  text.family(
      "idem_provider_last_answer_age_seconds", "gauge",
      "api.idempotency.provider.last.answer: seconds since its last answer, or since the start "
      "of this process. It is asked only while a record is unknown.");
  for (const auto& [provider, counts] : providers) {
    const auto age = now - counts->availability.seen().last_answer.value_or(began);
    text.seconds("idem_provider_last_answer_age_seconds", {"provider", provider},
                 std::chrono::duration<double>(age).count());
  }
}

void write_traces(Text& text, const SpanCounts& spans) {
  text.family("idem_spans_total", "counter",
              "api.idempotency.spans: recorded spans by what became of them.");
  for (std::size_t i = 0; i < spanned_count; ++i) {
    text.sample("idem_spans_total", "result", name_of(static_cast<Spanned>(i)),
                spans.results[i].load(std::memory_order_relaxed));
  }
}

void write_search(Text& text, const SearchCounts& search) {
  text.family("idem_search_not_indexed_total", "counter",
              "api.idempotency.search.not_indexed: values and bodies of requests and answers that "
              "a search does not find, by reason.");
  for (std::size_t i = 0; i < not_indexed_count; ++i) {
    const auto reason = static_cast<NotIndexed>(i);
    text.sample("idem_search_not_indexed_total", "reason", name_of(reason), search.count(reason));
  }
}

void write_build(Text& text, const std::string& version) {
  text.family("idem_build_info", "gauge", "api.idempotency.build: 1, of the version that runs.");
  text.sample("idem_build_info", "version", version, 1);
}

}  // namespace

void Registry::add_provider(std::string name, std::shared_ptr<const ProviderCounts> counts) {
  providers_.push_back({std::move(name), std::move(counts)});
}

Shard& Registry::add_shard() {
  const std::lock_guard lock(mutex_);
  return shards_.emplace_back();
}

Registry::Disk& Registry::add_disk(std::string of) {
  const std::lock_guard lock(mutex_);
  return disks_.emplace_back(std::move(of));
}

std::optional<std::chrono::duration<double>> Registry::reap_age() {
  const std::lock_guard lock(mutex_);
  return reap_age_of(shards_);
}

Totals Registry::totals() {
  const std::lock_guard lock(mutex_);
  Totals totals;
  for (std::size_t i = 0; i < outcome_count; ++i) {
    totals.reserves[i] = sum(shards_, [i](const Shard& one) { return one.reserves[i].value(); });
  }
  for (const Shard& shard : shards_) {
    for (const auto& of_route : shard.answers) {
      for (std::size_t place = 0; place < status_places; ++place) {
        const auto answers = of_route[place].value();
        totals.answers += answers;
        if (is_server_error(place)) totals.server_errors += answers;
      }
    }
  }
  totals.store_errors = sum(shards_, &Shard::store_errors);
  totals.reserve = sum(shards_, &Shard::reserve);
  totals.settle = sum(shards_, &Shard::settle);
  totals.upstream = sum(shards_, &Shard::upstream);
  return totals;
}

std::string Registry::exposition(const Gauges& gauges, Format format) {
  const std::lock_guard lock(mutex_);
  Text text(format);
  write_protocol_counters(text, shards_);
  write_times(text, shards_);
  // Without the store's part the counter would go back.
  if (gauges.census) leases_ended_ = gauges.census->leases_ended;
  text.single("idem_zombie_keys_total", "counter",
              "api.idempotency.zombie.keys: leases that ran out and were swept.",
              sum(shards_, &Shard::leases_ended) + leases_ended_);
  if (gauges.census) write_census(text, *gauges.census);
  write_reaping(text, shards_);
  write_turns(text, shards_, !providers_.empty());
  write_disks(text, disks_);
  write_clock(text, *clock_);
  if (gauges.loop_stalled) {
    text.single("idem_loop_stalled_seconds", "gauge",
                "api.idempotency.loop.stalled: for how long the event loop that has not completed "
                "a turn for longest has not.",
                std::chrono::duration<double>(*gauges.loop_stalled).count());
  }
  if (gauges.messages) write_outbox(text, gauges);
  write_tenants(text, shards_, tenants_);
  const MonotonicTime now = MonotonicClock::now();
  if (has_upstream_) {
    write_answers(text, shards_, routes_.labels());
    write_shadow(text, shadow_.counted());
    write_upstream(text, shards_, upstream_.seen());
  }
  if (has_authorizer_) write_authorizer(text, shards_, authorizer_.seen());
  if (!providers_.empty()) write_providers(text, providers_, now, began_);
  if (spans_) write_traces(text, *spans_);
  if (search_.is_on()) write_search(text, search_);
  if (!version_.empty()) write_build(text, version_);
  text.single("idem_open_connections", "gauge",
              "api.idempotency.connections.open: connections of clients.", gauges.open_connections);
  text.single("idem_refused_connections_total", "counter",
              "api.idempotency.connections.refused: closed at accept, over a limit.",
              gauges.refused_connections);
  text.single(
      "idem_log_lines_dropped_total", "counter",
      "api.idempotency.log.dropped: lines that the log lost, because nobody read it in time.",
      gauges.log_lines_dropped);
  text.single("idem_waiting_requests", "gauge",
              "api.idempotency.requests.waiting: requests that wait for an attempt under way.",
              gauges.waiting_requests);
  text.single("idem_unsettled_attempts", "gauge",
              "api.idempotency.unsettled: attempts whose outcome is not stored yet.",
              gauges.unsettled_attempts);
  text.single(
      "idem_store_up", "gauge",
      "api.idempotency.store.up: 1; 0 while calls are refused after failures in a row, until "
      "the store answers again.",
      std::uint64_t{gauges.store_answers});
  text.single("idem_store_calls_refused_total", "counter",
              "api.idempotency.store.refused: calls refused at once as unavailable while the store "
              "fails.",
              gauges.store_calls_refused);
  text.single("idem_damaged_records_total", "counter",
              "api.idempotency.records.damaged: reads of records whose bytes differ from those "
              "written, and such records that became due.",
              gauges.damaged_askings + sum(shards_, &Shard::damaged));
  return text.take();
}

}  // namespace idem::metrics
