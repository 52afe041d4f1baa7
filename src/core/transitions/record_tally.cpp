#include "core/transitions/record_tally.hpp"

#include "core/transitions/record_table.hpp"

#include <idem/limits.hpp>

namespace idem {
namespace {

std::size_t index_of(State state) { return static_cast<std::size_t>(state); }

Tallied tally_of(RecordTable& table) {
  Tallied tallied;
  table.tally(tallied);
  return tallied;
}

}  // namespace

void Tallied::add_unknown(StoreTime since, const RecordId& id) {
  unknowns.emplace(since, id);
  if (unknowns.size() <= limits::unknowns_tracked_max) return;
  unknowns.erase(std::prev(unknowns.end()));
  has_all_unknowns = false;
}

RecordTally::RecordTally(RecordTable& table) : table_(table), tallied_(tally_of(table)) {}

void RecordTally::changed(const RecordId& id, const std::optional<StateSummary>& before,
                          const std::optional<StateSummary>& after) {
  if (before) {
    --tallied_.by_state[index_of(before->state)];
    if (before->state == State::unknown) tallied_.unknowns.erase({before->since, id});
  }
  if (!after) return;
  ++tallied_.by_state[index_of(after->state)];
  if (after->state != State::unknown) return;
  // After some were left out, only a record older than a kept one may join: a younger one might be
  // younger than one that was left out.
  const bool is_among_the_oldest =
      tallied_.has_all_unknowns ||
      (!tallied_.unknowns.empty() && after->since < tallied_.unknowns.rbegin()->first);
  if (is_among_the_oldest) tallied_.add_unknown(after->since, id);
}

Census RecordTally::census(StoreTime now) {
  const bool needs_recount = tallied_.unknowns.empty() && !tallied_.has_all_unknowns;
  if (needs_recount) tallied_ = tally_of(table_);
  Census census{.by_state = tallied_.by_state, .leases_ended = leases_ended_, .now = now};
  if (!tallied_.unknowns.empty()) census.oldest_unknown = tallied_.unknowns.begin()->first;
  return census;
}

}  // namespace idem
