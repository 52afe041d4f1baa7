#include "store/postgres/lanes.hpp"

#include "store/postgres/put_record.hpp"
#include "store/verb_traits.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <iterator>
#include <set>

namespace idem::postgres {
namespace {

std::size_t bytes_of_answer(const StoreCall& call) noexcept {
  if (const auto* put = std::get_if<PutRecord>(&call)) return payload_of(*put);
  const auto* complete = std::get_if<Complete>(&call);
  return complete != nullptr ? complete->response.body.size() : 0;
}

/// Moves repeated calls of a record behind the first calls of all records; keeps the order.
void repeats_last(std::deque<Waiting>& calls) {
  const RecordId* before = nullptr;
  std::deque<Waiting> repeats;
  std::deque<Waiting> firsts;
  for (Waiting& one : calls) {
    const bool is_repeat = before != nullptr && *record_of(one.call) == *before;
    auto& to = is_repeat ? repeats : firsts;
    to.push_back(std::move(one));
    before = record_of(to.back().call);
  }
  firsts.insert(firsts.end(), std::make_move_iterator(repeats.begin()),
                std::make_move_iterator(repeats.end()));
  calls = std::move(firsts);
}

/// Fewer calls are not divided: for a statement of 24 calls, its own commit costs as much as the
/// division gains.
constexpr std::size_t divided_min = 48;

/// The calls of one statement have these in common.
struct Terms {
  std::size_t verb = 0;  ///< Of the lane of all other verbs; owners' verbs may differ.
  std::uint64_t generation = 0;
  bool is_counted = false;
  Quota quota{};
  bool operator==(const Terms&) const = default;
};
Terms terms_of(const StoreCall& call) {
  if (const auto* put = std::get_if<PutRecord>(&call)) return {call.index(), put->generation};
  if (std::holds_alternative<ReadEvidence>(call)) return {call.index()};
  const auto* const reserve = std::get_if<Reserve>(&call);
  if (reserve == nullptr) return {};
  return {call.index(), reserve->generation, reserve->quota.has_value(),
          reserve->quota.value_or(Quota{})};
}

}  // namespace

Lane lane_of(const StoreCall& call) noexcept {
  if (std::holds_alternative<Reserve>(call)) return Lane::reserves;
  if (std::holds_alternative<Find>(call)) return Lane::finds;
  return traits_of(call).is_owners ? Lane::owners : Lane::others;
}

const RecordId* record_of(const StoreCall& call) noexcept {
  // A reserve with other names may meet any of them; it is sent alone.
  if (const auto* reserve = std::get_if<Reserve>(&call)) {
    return reserve->also.empty() ? &reserve->id : nullptr;
  }
  if (const auto* find = std::get_if<Find>(&call)) return &find->id;
  if (const auto* read = std::get_if<ReadEvidence>(&call)) return &read->id;
  if (const auto* put = std::get_if<PutRecord>(&call)) {
    return goes_with_others(*put) ? &put->id : nullptr;
  }
  return traits_of(call).is_owners ? &id_of_owners(call) : nullptr;
}

void Lanes::add(Waiting waiting) {
  lanes_[static_cast<std::size_t>(lane_of(waiting.call))].push_back(std::move(waiting));
}

void Lanes::put_back(std::vector<Waiting> calls) {
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    lanes_[static_cast<std::size_t>(lane_of(call->call))].push_front(std::move(*call));
  }
}

std::size_t Lanes::share_of(std::size_t waiting) noexcept {
  std::size_t all = 0;
  for (const Lane lane : {Lane::reserves, Lane::owners}) {
    all += of(lane).size() + under_way_[static_cast<std::size_t>(lane)];
  }
  // A caller that was just answered has not come back yet, and still belongs to the crowd.
  crowd_ = std::max(all, crowd_ - crowd_ / 16);
  // Up to three quarters of the crowd go together, so that two groups stay two.
  return waiting < divided_min || waiting * 4 < crowd_ * 3 ? waiting : (crowd_ + 1) / 2;
}

std::vector<Waiting> Lanes::take(Lane lane, std::size_t most) {
  auto& waiting = lanes_[static_cast<std::size_t>(lane)];
  std::vector<Waiting> batch;
  if (waiting.empty()) return batch;
  // What they read has no bound that is known before.
  if (lane == Lane::finds || std::holds_alternative<ReadEvidence>(waiting.front().call)) {
    most = std::min(most, limits::store_statement_finds_max);
  }
  if (lane == Lane::reserves || lane == Lane::owners)
    most = std::min(most, share_of(waiting.size()));
  auto& under_way = under_way_[static_cast<std::size_t>(lane)];
  const auto is_single = [](const Waiting& one) {
    return one.alone || record_of(one.call) == nullptr;
  };
  if (is_single(waiting.front())) {
    batch.push_back(std::move(waiting.front()));
    waiting.pop_front();
    under_way = 1;
    return batch;
  }
  std::set<RecordId> records;
  std::deque<Waiting> taken;
  std::size_t bytes = 0;
  std::deque<Waiting> rest;
  const Terms terms = terms_of(waiting.front().call);
  while (!waiting.empty() && taken.size() < most && rest.size() < most) {
    Waiting& next = waiting.front();
    bool fits = !is_single(next) && terms_of(next.call) == terms;
    fits = fits && (taken.empty() ||
                    bytes + bytes_of_answer(next.call) <= limits::store_statement_bytes_max);
    if (fits && (lane == Lane::owners || lane == Lane::others))
      fits = records.insert(*record_of(next.call)).second;
    if (fits) bytes += bytes_of_answer(next.call);
    auto& to = fits ? taken : rest;
    to.push_back(std::move(next));
    waiting.pop_front();
  }
  waiting.insert(waiting.begin(), std::make_move_iterator(rest.begin()),
                 std::make_move_iterator(rest.end()));
  // All batches lock in one order, so no two of them can deadlock.
  std::ranges::stable_sort(taken, {}, [](const Waiting& one) { return *record_of(one.call); });
  if (lane == Lane::reserves) repeats_last(taken);
  under_way = taken.size();
  batch.assign(std::make_move_iterator(taken.begin()), std::make_move_iterator(taken.end()));
  return batch;
}

std::size_t Lanes::size() const noexcept {
  std::size_t all = 0;
  for (const auto& lane : lanes_) all += lane.size();
  return all;
}

}  // namespace idem::postgres
