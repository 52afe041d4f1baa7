#include "store/mysql/lanes.hpp"

#include "store/verb_traits.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <iterator>

namespace idem::mysql {
namespace {

// A crowd that comes at once is divided, so that one connection's batch is made while the other's
// commits. Below this a batch costs more than it gains.
constexpr std::size_t divided_from = 32;

/// The bytes of a call that may be many.
std::size_t call_bytes(const StoreCall& call) noexcept {
  if (const auto* accept = std::get_if<Accept>(&call)) return accept->request.size();
  if (const auto* complete = std::get_if<Complete>(&call)) return complete->response.body.size();
  if (const auto* resolve = std::get_if<Resolve>(&call)) {
    return resolve->response ? resolve->response->body.size() : 0;
  }
  if (const auto* put = std::get_if<PutRecord>(&call); put && put->record) {
    const auto& [response, request] = std::tie(put->record->response, put->record->stored_request);
    return (response ? response->body.size() : 0) + (request ? request->size() : 0);
  }
  if (const auto* reseal = std::get_if<Reseal>(&call)) {
    return reseal->response ? reseal->response->body.size() : reseal->request->size();
  }
  return 0;
}

}  // namespace

Lane lane_of(const StoreCall& call) noexcept {
  if (std::holds_alternative<Find>(call)) return Lane::finds;
  const bool is_of_records =
      traits_of(call).is_owners || std::holds_alternative<Reserve>(call) ||
      std::holds_alternative<Accept>(call) || std::holds_alternative<Resolve>(call) ||
      std::holds_alternative<CacheBust>(call) || std::holds_alternative<Reschedule>(call) ||
      std::holds_alternative<Reseal>(call) || std::holds_alternative<PutRecord>(call);
  return is_of_records ? Lane::records : Lane::others;
}

std::vector<RecordId> records_of(const StoreCall& call) {
  return std::visit(
      [](const auto& verb) -> std::vector<RecordId> {
        const auto with_others = [](const Reserve& reserve) {
          std::vector<RecordId> ids{reserve.id};
          for (const OtherName& other : reserve.also) ids.push_back(other.id);
          return ids;
        };
        using Verb = std::decay_t<decltype(verb)>;
        if constexpr (std::is_same_v<Verb, Reserve>) return with_others(verb);
        if constexpr (std::is_same_v<Verb, Accept>) return with_others(verb.as);
        if constexpr (requires { RecordId(verb.id); }) return {verb.id};
        return {};
      },
      call);
}

const Reserve* reserve_in(const StoreCall& call) noexcept {
  if (const auto* reserve = std::get_if<Reserve>(&call)) return reserve;
  const auto* accept = std::get_if<Accept>(&call);
  return accept != nullptr ? &accept->as : nullptr;
}

bool counts_alone(const Reserve& reserve) noexcept {
  return reserve.quota &&
         (reserve.quota->active_keys > 0 || reserve.quota->new_key_interval > Millis(0));
}

Lanes::Calls& Lanes::of(const StoreCall& call) noexcept {
  switch (lane_of(call)) {
    case Lane::records:
      return traits_of(call).is_owners ? owners_ : others_of_records_;
    case Lane::finds:
      return finds_;
    case Lane::others:
      return others_;
  }
  return others_;
}

void Lanes::add(Waiting waiting) {
  Calls& calls = of(waiting.call);
  calls.push_back(std::move(waiting));
}

void Lanes::put_back(std::vector<Waiting> calls) {
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    of(call->call).push_front(std::move(*call));
  }
}

std::vector<Waiting> Lanes::take_first(Calls& calls, std::size_t most) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(most, calls.size()));
  std::vector<Waiting> batch(std::make_move_iterator(calls.begin()),
                             std::make_move_iterator(calls.begin() + count));
  calls.erase(calls.begin(), calls.begin() + count);
  return batch;
}

// Calls about the same record stay in their order: what is behind one that is left is left, too.
void Lanes::take_from(Calls& calls, std::size_t most, std::vector<Waiting>& batch,
                      std::size_t& bytes) {
  Calls left;
  std::set<RecordId> behind;
  while (!calls.empty() && batch.size() < most) {
    Waiting next = std::move(calls.front());
    calls.pop_front();
    const std::vector<RecordId> records = records_of(next.call);
    const std::size_t more = call_bytes(next.call);
    const Reserve* const reserve = reserve_in(next.call);
    bool fits = std::ranges::none_of(
        records, [&](const RecordId& id) { return taken_.contains(id) || behind.contains(id); });
    fits = fits && (reserve == nullptr || !counts_alone(*reserve) ||
                    !taken_scopes_.contains(reserve->scope));
    const bool is_first = batch.empty();
    fits = fits && (is_first || (!next.alone && !batch.front().alone &&
                                 bytes + more <= limits::store_statement_bytes_max));
    if (fits) {
      bytes += more;
      batch.push_back(std::move(next));
      continue;
    }
    behind.insert(records.begin(), records.end());
    left.push_back(std::move(next));
    if (left.size() >= limits::store_statement_calls_max) break;
  }
  calls.insert(calls.begin(), std::make_move_iterator(left.begin()),
               std::make_move_iterator(left.end()));
}

std::vector<Waiting> Lanes::take(Lane lane) {
  if (lane == Lane::finds) return take_first(finds_, limits::store_statement_finds_max);
  if (lane == Lane::others) return take_first(others_, 1);
  std::vector<Waiting> batch;
  std::size_t bytes = 0;
  const std::size_t waiting = owners_.size() + others_of_records_.size();
  const bool halves = taken_.empty() && waiting >= divided_from;
  const std::size_t most =
      halves ? (waiting + 1) / 2 : std::size_t{limits::store_statement_calls_max};
  take_from(owners_, most, batch, bytes);
  take_from(others_of_records_, most, batch, bytes);
  const Taken taken = taken_by(batch);
  taken_.insert(taken.records.begin(), taken.records.end());
  taken_scopes_.insert(taken.scopes.begin(), taken.scopes.end());
  return batch;
}

Lanes::Taken Lanes::taken_by(const std::vector<Waiting>& batch) {
  Taken taken;
  for (const Waiting& one : batch) {
    std::ranges::copy(records_of(one.call), std::back_inserter(taken.records));
    const Reserve* const reserve = reserve_in(one.call);
    if (reserve != nullptr && counts_alone(*reserve)) taken.scopes.push_back(reserve->scope);
  }
  return taken;
}

void Lanes::free(const Taken& taken) {
  for (const RecordId& id : taken.records) taken_.erase(id);
  for (const std::string& scope : taken.scopes) taken_scopes_.erase(scope);
}

std::size_t Lanes::size() const noexcept {
  return owners_.size() + others_of_records_.size() + finds_.size() + others_.size();
}

}  // namespace idem::mysql
