#include "store/log/work_lists.hpp"

#include "core/transitions/transitions.hpp"
#include "store/log/keys.hpp"

#include <algorithm>

namespace idem::segments {
namespace {

constexpr char by_state = 's';
constexpr char to_claim = 'c';
constexpr char to_expire = 'd';
constexpr char hidden_from_lifecycle = 'h';
constexpr char hidden_from_claims = 'k';

std::string key_of(char kind, const RecordId& id) {
  std::string key(1, kind);
  return key.append(bytes_of(id));
}
std::string key_of(char kind, StoreTime moment, const RecordId& id) {
  std::string key(1, kind);
  append_ordered(key, to_bits(moment));
  return key.append(bytes_of(id));
}
/// Behind kind and moment.
std::optional<RecordId> id_in(std::string_view key) {
  constexpr std::size_t at = 1 + sizeof(std::uint64_t);
  return key.size() < at ? std::nullopt : to_id(key.substr(at));
}

}  // namespace

WorkLists::WorkLists(Database& db) : db_(db), first_claim_(1, to_claim) {
  auto at = db_.iterate(Family::work);
  for (const auto& [kind, ids] :
       {std::pair(hidden_from_lifecycle, &undue_), std::pair(hidden_from_claims, &unclaimed_)}) {
    const std::string prefix(1, kind);
    for (at.to(prefix); at.is_on_key() && at.key().starts_with(prefix); at.next()) {
      if (const auto id = to_id(at.key().substr(1))) ids->insert(*id);
    }
  }
  db_.check(at, Family::work);
}

bool WorkLists::has_list(State state) noexcept {
  return state == State::pending || state == State::failed_retryable || state == State::unknown;
}

std::string WorkLists::prefix_of(State state) { return {by_state, static_cast<char>(state)}; }

namespace {

/// The keys of the lists that the record belongs on: by state, to claim, to expire.
std::vector<std::string> keys_of(const Record& record) {
  std::vector<std::string> keys;
  if (!WorkLists::has_list(record.state)) return keys;
  keys.push_back(WorkLists::prefix_of(record.state).append(bytes_of(record.id)));
  if (record.state != State::pending) return keys;
  keys.push_back(key_of(to_claim, record.locked_until, record.id));
  if (const auto due = transitions::due_at(record)) {
    keys.push_back(key_of(to_expire, *due, record.id));
  }
  return keys;
}

}  // namespace

bool WorkLists::have(Database& db, const Record& record) {
  std::string value;
  return std::ranges::all_of(keys_of(record), [&](const std::string& key) {
    return db.find(Family::work, key, value).value_or(false);
  });
}

void WorkLists::add(const Record& record) {
  show_again(undue_, hidden_from_lifecycle, record.id);
  show_again(unclaimed_, hidden_from_claims, record.id);
  for (const std::string& key : keys_of(record)) {
    if (key.front() == to_claim) first_claim_ = std::min(first_claim_, key);
    db_.put(Family::work, key, "");
  }
}

void WorkLists::drop(const RecordId& id, State state, const Record* record) {
  if (record != nullptr && record->state == state) {
    for (const std::string& key : keys_of(*record)) db_.erase(Family::work, key);
  } else if (has_list(state)) {
    db_.erase(Family::work, prefix_of(state).append(bytes_of(id)));
  }
}

std::vector<RecordId> WorkLists::due(StoreTime now, std::size_t limit) {
  std::vector<RecordId> ids;
  std::string end(1, to_expire);
  append_ordered(end, to_bits(now) + 1);
  auto at = db_.iterate(Family::work);
  for (at.to({&to_expire, 1}); at.is_on_key() && ids.size() < limit; at.next()) {
    if (at.key() >= end) break;
    const auto id = id_in(at.key());
    if (id && !undue_.contains(*id)) ids.push_back(*id);
  }
  db_.check(at, Family::work);
  return ids;
}

std::optional<RecordId> WorkLists::first_to_claim(
    StoreTime now, const std::function<bool(const RecordId&)>& may_be_claimed) {
  std::string end(1, to_claim);
  append_ordered(end, to_bits(now) + 1);
  auto at = db_.iterate(Family::work);
  bool is_first = true;
  for (at.to(first_claim_); at.is_on_key(); at.next()) {
    if (is_first) first_claim_ = std::min(end, std::string(at.key()));
    is_first = false;
    if (at.key() >= end) break;
    const auto id = id_in(at.key());
    if (id && !unclaimed_.contains(*id) && may_be_claimed(*id)) return id;
  }
  db_.check(at, Family::work);
  return std::nullopt;
}

void WorkLists::hide_from_lifecycle(const RecordId& id) {
  if (undue_.insert(id).second) db_.put(Family::work, key_of(hidden_from_lifecycle, id), "");
}
void WorkLists::hide_from_claims(const RecordId& id) {
  if (unclaimed_.insert(id).second) db_.put(Family::work, key_of(hidden_from_claims, id), "");
}

void WorkLists::show_again(std::set<RecordId>& hidden, char kind, const RecordId& id) {
  if (!hidden.empty() && hidden.erase(id) > 0) db_.erase(Family::work, key_of(kind, id));
}

}  // namespace idem::segments
