#include "core/record/stored_fence.hpp"
#include "core/transitions/record_changes.hpp"
#include "core/transitions/transitions.hpp"
#include "store_conformance/transition_shapes.hpp"

#include <fmt/format.h>

#include <functional>
#include <set>
#include <tuple>

/// Every shape of record against every form of verb. The table below is §3's, written down a second
/// time: where it has a row, the machine must follow it; where it has none, nothing may change.
namespace idem::test {
namespace {

using transitions::Change;
using transitions::FenceCounter;
using transitions::Write;

enum class Event {
  reserve,
  accept,
  claim,
  dispatched,
  renew,
  advance,
  complete,
  release,
  mark_unknown,
  resolve_completed,
  resolve_failed,
  cache_bust,
  sweep,
  reap,
};

constexpr State gone{};  // As a `to`: no record is left.

struct TableRow {
  const char* name;
  std::set<State> from;  ///< Empty: no record.
  std::set<Event> events;
  State to;
  std::function<bool(const Facts&)> when;
};

bool abandoned(const Facts& f) { return !f.lease_holds && !f.dispatched; }

bool always(const Facts& /*facts*/) { return true; }
bool same_request(const Facts& f) { return f.same_request; }
bool attempt_matches(const Facts& f) { return f.match; }

std::vector<TableRow> rows_of_starts() {
  using enum Event;
  using enum State;
  return {
      {"reserve", {}, {reserve}, in_progress, always},
      {"accept", {}, {accept}, pending, always},
      {"accept again", {failed_retryable}, {accept}, pending, same_request},
      {"claim",
       {pending},
       {claim},
       in_progress,
       [](const Facts& f) { return f.due && !f.past_expiry; }},
      {"pending times out",
       {pending},
       {Event::sweep, reserve, accept},
       completed,
       [](const Facts& f) { return f.past_expiry && f.same_request; }},
      {"retry", {failed_retryable}, {reserve}, in_progress, same_request},
  };
}

std::vector<TableRow> rows_of_owners() {
  using enum Event;
  using enum State;
  return {
      {"complete", {in_progress}, {complete}, completed, attempt_matches},
      {"release",
       {in_progress, State::unknown},
       {release},
       failed_retryable,
       [](const Facts& f) { return f.match && !f.request_stored; }},
      {"release, async",
       {in_progress, State::unknown},
       {release},
       pending,
       [](const Facts& f) { return f.match && f.request_stored && !f.past_expiry; }},
      {"release, async, too late",
       {in_progress, State::unknown},
       {release},
       completed,
       [](const Facts& f) { return f.match && f.request_stored && f.past_expiry; }},
      {"mark unknown", {in_progress}, {mark_unknown}, State::unknown, attempt_matches},
      {"renew, advance",
       {in_progress},
       {renew, advance},
       in_progress,
       [](const Facts& f) { return f.match && f.lease_holds; }},
      {"dispatched",
       {in_progress},
       {Event::dispatched},
       in_progress,
       [](const Facts& f) { return f.match && f.lease_holds && !f.dispatched; }},
      {"late answer",
       {failed_retryable, pending, State::unknown},
       {complete},
       completed,
       attempt_matches},
  };
}

std::vector<TableRow> rows_of_ended_leases() {
  using enum Event;
  using enum State;
  return {
      {"never dispatched, swept",
       {in_progress},
       {Event::sweep},
       failed_retryable,
       [](const Facts& f) { return abandoned(f) && !f.request_stored; }},
      {"never dispatched, swept, async",
       {in_progress},
       {Event::sweep, reserve},
       pending,
       [](const Facts& f) {
         return abandoned(f) && f.request_stored && !f.past_expiry && f.same_request;
       }},
      {"never dispatched, swept, async, too late",
       {in_progress},
       {Event::sweep, reserve, accept},
       completed,
       [](const Facts& f) {
         return abandoned(f) && f.request_stored && f.past_expiry && f.same_request;
       }},
      {"never dispatched, accepted",
       {in_progress},
       {accept},
       pending,
       [](const Facts& f) {
         const bool reruns = !f.lease_holds && f.reruns && !f.request_stored;
         return (reruns || (abandoned(f) && !(f.request_stored && f.past_expiry))) &&
                f.same_request;
       }},
      {"never dispatched, reserved",
       {in_progress},
       {reserve},
       in_progress,
       [](const Facts& f) { return abandoned(f) && !f.request_stored && f.same_request; }},
      {"lease ran out",
       {in_progress},
       {Event::sweep, reserve, accept},
       State::unknown,
       [](const Facts& f) {
         return !f.lease_holds && f.dispatched && !f.may_rerun && f.same_request;
       }},
      {"resumed, rerun",
       {in_progress},
       {reserve},
       in_progress,
       [](const Facts& f) {
         return !f.lease_holds && f.dispatched && f.may_rerun && f.same_request;
       }},
  };
}

std::vector<TableRow> rows_of_evidence() {
  using enum Event;
  using enum State;
  return {
      {"positive evidence",
       {failed_retryable, pending, State::unknown},
       {resolve_completed},
       completed,
       [](const Facts& f) { return f.current_fence && f.with_response; }},
      {"positive evidence without its place",
       {failed_retryable, pending},
       {resolve_completed},
       State::unknown,
       [](const Facts& f) {
         return f.may_be_current && !f.denies && !(f.current_fence && f.with_response);
       }},
      {"negative evidence",
       {State::unknown},
       {resolve_failed},
       failed_retryable,
       [](const Facts& f) { return f.after_lease && f.current_fence && !f.request_stored; }},
      {"negative evidence, async",
       {State::unknown},
       {resolve_failed},
       pending,
       [](const Facts& f) {
         return f.after_lease && f.current_fence && f.request_stored && !f.past_expiry;
       }},
      {"negative evidence, async, too late",
       {State::unknown},
       {resolve_failed},
       completed,
       [](const Facts& f) {
         return f.after_lease && f.current_fence && f.request_stored && f.past_expiry;
       }},
  };
}

std::vector<TableRow> rows_of_ends() {
  using enum Event;
  using enum State;
  return {
      {"cache-bust",
       {completed},
       {cache_bust},
       failed_retryable,
       [](const Facts& f) {
         return f.server_error && !f.past_expiry && f.current_fence && !f.found_out;
       }},
      {"expire", {completed}, {Event::reap}, expired, [](const Facts& f) { return f.past_expiry; }},
      {"drop failed",
       {failed_retryable},
       {Event::reap},
       gone,
       [](const Facts& f) { return f.past_expiry; }},
      {"drop tombstone",
       {expired},
       {Event::reap},
       gone,
       [](const Facts& f) { return f.past_tombstone; }},
  };
}

const std::vector<TableRow>& table() {
  static const std::vector<TableRow> all = [] {
    std::vector<TableRow> rows;
    for (const auto& some : {rows_of_starts(), rows_of_owners(), rows_of_ended_leases(),
                             rows_of_evidence(), rows_of_ends()}) {
      rows.insert(rows.end(), some.begin(), some.end());
    }
    return rows;
  }();
  return all;
}

// ---- every form of verb ----

struct AskedOnce {
  std::string name;
  Event event;
  /// Fills in what depends on the verb; makes the change.
  std::function<Change(std::optional<Record>&, Facts&, FenceCounter&)> apply;
};

void add_reserves(std::vector<AskedOnce>& all) {
  for (const bool same : {true, false}) {
    for (const int token_number : {1, 2}) {
      all.push_back(
          {fmt::format("reserve same={} token={}", same, token_number), Event::reserve,
           [=](auto& record, Facts& facts, FenceCounter& fences) {
             Reserve verb = a_reserve(1, token_number);
             verb.fingerprints = {body(same ? 1 : 2)};
             facts.same_request = same;
             return transitions::reserve(record, verb, verb.fingerprints, now, fences).change;
           }});
    }
    all.push_back({fmt::format("accept same={}", same), Event::accept,
                   [=](auto& record, Facts& facts, FenceCounter&) {
                     Accept verb = an_accept(1, "another copy");
                     verb.as.fingerprints = {body(same ? 1 : 2)};
                     facts.same_request = same;
                     return transitions::accept(record, verb, verb.as.fingerprints, now).change;
                   }});
  }
  all.push_back(
      {"claim", Event::claim, [](auto& record, Facts&, FenceCounter& fences) {
         if (!record || !transitions::is_claimable(*record, now)) return Change{};
         return transitions::claim(*record, {token(9), "d", lease, true}, now, fences).change;
       }});
}

template <class Verb, class Transition>
void add_owner(std::vector<AskedOnce>& all, const char* name, Event event, Verb verb,
               Transition step) {
  for (const Fence fence : {7, 0, 8}) {
    for (const int token_number : {1, 2}) {
      verb.attempt = {fence_from(fence), token(token_number)};
      all.push_back({fmt::format("{} fence={} token={}", name, fence, token_number), event,
                     [=](auto& record, Facts& facts, FenceCounter&) {
                       facts.match =
                           record && record->fence() == 7U && token_number == 1 && fence != 8;
                       Verb asked = verb;
                       return step(record, asked, now).change;
                     }});
    }
  }
}

void add_evidence(std::vector<AskedOnce>& all) {
  for (const Fence fence : {7, 0, 8}) {
    for (const bool response : {true, false}) {
      for (const int finding : {1, 0, -1}) {  // Done, refused, not there.
        const bool positive = finding >= 0;
        const auto as = positive ? Resolve::As::completed : Resolve::As::failed_retryable;
        all.push_back(
            {fmt::format("resolve said={} fence={} response={}", finding, fence, response),
             positive ? Event::resolve_completed : Event::resolve_failed,
             [=](auto& record, Facts& facts, FenceCounter&) {
               facts.current_fence = record && record->fence() == fence && fence != 0;
               facts.may_be_current =
                   record && record->attempt && (fence == 0 || record->fence() == fence);
               facts.denies = finding == 0;
               facts.with_response = response;
               facts.after_lease = record && now > record->locked_until;
               Resolve verb = a_resolve(1, as, fence_from(fence), now);
               if (!response) verb.response.reset();
               verb.denies = finding == 0;
               return transitions::resolve(record, verb, now).change;
             }});
      }
    }
  }
  for (const Fence fence : {7, 0, 8}) {
    for (const bool found_out : {true, false}) {
      all.push_back({fmt::format("cache-bust fence={} found_out={}", fence, found_out),
                     Event::cache_bust, [=](auto& record, Facts& facts, FenceCounter&) {
                       facts.current_fence = record && record->fence() == fence && fence != 0;
                       facts.found_out = found_out;
                       // Evidence about another attempt, or refused evidence, does not count.
                       std::vector<EvidenceEntry> log(3);
                       for (auto& entry : log) entry.after = State::completed;
                       log[0].fence = 6;
                       log[0].applied = true;
                       log[1].fence = 7;
                       log[2].fence = found_out ? 7 : 6;
                       log[2].applied = true;
                       return transitions::cache_bust(record, {key(1), fence_from(fence), "why"},
                                                      log, now)
                           .change;
                     }});
    }
  }
}

std::vector<AskedOnce> verbs() {
  std::vector<AskedOnce> all;
  add_reserves(all);
  add_owner(all, "dispatched", Event::dispatched, Dispatched{key(1), {}}, transitions::dispatched);
  add_owner(all, "renew", Event::renew, Renew{key(1), {}, lease}, transitions::renew);
  add_owner(all, "advance", Event::advance, Advance{key(1), {}, "phase-2"}, transitions::advance);
  add_owner(all, "complete", Event::complete, a_complete({}), transitions::complete);
  add_owner(all, "release", Event::release, a_release({}), transitions::release);
  add_owner(all, "mark_unknown", Event::mark_unknown, a_mark_unknown({}),
            transitions::mark_unknown);
  add_evidence(all);
  all.push_back({"sweep", Event::sweep, [](auto& record, Facts&, FenceCounter&) {
                   return record ? transitions::sweep(*record, now) : Change{};
                 }});
  all.push_back({"reap", Event::reap, [](auto& record, Facts&, FenceCounter&) {
                   const Change change = record ? transitions::reap(*record, now) : Change{};
                   if (change.write == Write::erase) record.reset();
                   return change;
                 }});
  return all;
}

const TableRow* row_for(const Facts& facts, Event event) {
  // The reaper sees what lies there; for all others a dead record is none.
  const bool none = event == Event::reap ? facts.state == State{} : facts.none;
  const TableRow* found = nullptr;
  for (const TableRow& row : table()) {
    if (!row.events.contains(event)) continue;
    if (none ? !row.from.empty() : !row.from.contains(facts.state)) continue;
    if (!row.when(facts)) continue;
    EXPECT_EQ(found, nullptr) << "two rows: " << found->name << " and " << row.name;
    found = &row;
  }
  return found;
}

TEST(TransitionTable, S03_the_machine_does_exactly_the_transitions_of_the_table) {
  std::set<std::string> used;
  for (const Shape& shape : shapes()) {
    for (const AskedOnce& verb : verbs()) {
      std::optional<Record> record = shape.record;
      Facts facts = shape.facts;
      FenceCounter fences{100};
      const Change change = verb.apply(record, facts, fences);
      const std::string what = verb.name + " on " + describe(shape.record);
      const TableRow* row = row_for(facts, verb.event);
      if (row == nullptr) {
        // §19: what cannot be applied contests the record, and changes nothing else.
        const bool contests =
            verb.event == Event::resolve_completed && record && record->is_contested;
        // §22: or is kept to be compared with the answer.
        const bool is_kept = record && record->last_error_code == transitions::denied_code &&
                             shape.record->last_error_code != transitions::denied_code;
        EXPECT_EQ(change.write, contests || is_kept ? Write::update : Write::none) << what;
        if (is_kept) {
          EXPECT_TRUE(facts.denies && facts.may_be_current) << what;
        }
        EXPECT_EQ(fences.last, 100u) << what;
        // A replay takes the answer out of the copy that it was given.
        const bool replayed = facts.state == State::completed && !facts.past_expiry;
        if (!replayed) {
          auto expected = shape.record;
          if (expected && contests) expected->is_contested = true;
          if (is_kept) expected->last_error_code = transitions::denied_code;
          EXPECT_EQ(describe(record), describe(expected)) << what;
        }
        continue;
      }
      used.insert(row->name);
      EXPECT_NE(change.write, Write::none) << what << " by " << row->name;
      EXPECT_EQ(record ? record->state : gone, row->to) << what << " by " << row->name;
      const bool new_attempt = verb.event == Event::claim ||
                               (verb.event == Event::reserve && row->to == State::in_progress);
      EXPECT_EQ(fences.last, new_attempt ? 101u : 100u) << what << " by " << row->name;
      if (new_attempt) {
        EXPECT_EQ(record->fence(), 101u) << what;
        EXPECT_EQ(record->recovery_point, facts.none ? "" : "phase-1") << what;
      }
    }
  }
  for (const TableRow& row : table()) EXPECT_TRUE(used.contains(row.name)) << row.name;
}

TEST(TransitionTable, S03_the_sweeper_and_the_reaper_get_exactly_the_due_records) {
  for (const Shape& shape : shapes()) {
    if (!shape.record) continue;
    Record swept = *shape.record;
    Record reaped = *shape.record;
    const bool acts = transitions::sweep(swept, now).write != Write::none ||
                      transitions::reap(reaped, now).write != Write::none;
    const auto due = transitions::due_at(*shape.record);
    EXPECT_EQ(due && *due <= now, acts) << describe(*shape.record);
  }
}

}  // namespace
}  // namespace idem::test
