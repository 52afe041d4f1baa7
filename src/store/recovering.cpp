#include "store/recovering.hpp"

#include "core/record/store_clock.hpp"
#include "store/asked_at_once.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace idem {
namespace {

/// Few enough to be held with their bodies, enough for one sync.
constexpr std::size_t put_at_once = 256;

/// Whether `found` is of a later moment than what the store has.
bool is_later(const Record& found, const Record& held) {
  if (found.changed_at != held.changed_at) return found.changed_at > held.changed_at;
  // A commit later within the same millisecond: an attempt ends, and no ended one runs on.
  return held.state == State::in_progress && found.state != State::in_progress;
}

}  // namespace

std::expected<void, StoreError> RecoveredRecords::put(Record&& record) {
  if (ids_.contains(record.id)) {
    if (auto done = flush(); !done) return done;
  }
  ids_.insert(record.id);
  waiting_.push_back(std::move(record));
  if (waiting_.size() < put_at_once) return {};
  return flush();
}

std::expected<void, StoreError> RecoveredRecords::flush() {
  const std::vector<Record> found = std::exchange(waiting_, {});
  ids_.clear();
  std::vector<Find> finds;
  for (const Record& record : found) finds.push_back(Find{record.id});
  const auto held = Asked<Find>(to_, std::move(finds)).wait();
  std::vector<PutRecord> puts;
  for (std::size_t i = 0; i < found.size(); ++i) {
    // One that is damaged there gives way, if its place can be read at all.
    const bool is_damaged = !held[i] && held[i].error().code == StoreError::Code::damaged;
    if (!held[i] && !is_damaged) return std::unexpected(held[i].error());
    if (held[i] && *held[i] && !is_later(found[i], **held[i])) continue;
    const auto known = ask_and_wait(to_, ReadEvidence{found[i].id});
    if (!known) continue;
    auto lines = evidence_of_(found[i].id);
    lines.erase(lines.begin(),
                lines.begin() + static_cast<std::ptrdiff_t>(std::min(lines.size(), known->size())));
    puts.push_back({.id = found[i].id,
                    .record = found[i],
                    .behind = known->size(),
                    .evidence = std::move(lines),
                    .fence_floor = found[i].fence().value_or(0),
                    .generation = to_.identity().generation});
  }
  for (const auto& reply : Asked<PutRecord>(to_, std::move(puts)).wait()) {
    // A damaged one that has no place either stays, and keeps its key.
    if (!reply && reply.error().code != StoreError::Code::damaged) {
      return std::unexpected(reply.error());
    }
  }
  return {};
}

void lose_bytes(Record& record) {
  record.response.reset();
  record.stored_request.reset();
  record.completed_at.reset();
  record.tombstone_until.reset();
  record.state = record.attempt ? State::in_progress : State::failed_retryable;
  if (!record.expires_at) record.expires_at = record.changed_at + record.retention;
}

void add_what_a_copy_lacks(Recovered& recovered, std::optional<StoreTime> copied_at) {
  if (!copied_at) return;
  const bool is_known =
      *copied_at != StoreTime{} && (!recovered.lacks_keys || recovered.lacks_from.has_value());
  recovered.lacks_from =
      is_known ? std::optional(std::min(recovered.lacks_from.value_or(*copied_at), *copied_at))
               : std::nullopt;
  recovered.lacks_keys = true;
}

StoreTime copied_at_of(const Recovered& recovered) {
  return recovered.lacks_keys ? recovered.lacks_from.value_or(StoreTime{}) : wall_time();
}

std::optional<StoreFileError> why_not_recovered(const RecoverOrder& order) {
  struct stat found{};
  if (::lstat(order.to.c_str(), &found) != 0) return std::nullopt;
  return StoreFileError{StoreFileError::Kind::refused,
                        order.to + ": there is something already; name a new one"};
}

}  // namespace idem
