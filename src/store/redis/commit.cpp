#include "store/redis/commit.hpp"

#include "core/bytes/checksum.hpp"
#include "core/record/stored_fence.hpp"
#include "store/redis/scripts.hpp"

#include <idem/limits.hpp>

#include <map>

namespace idem::redis {
namespace {

using transitions::Write;

/// The changes of the bucket's counters by a write that makes, changes or erases a record.
class Counters {
 public:
  explicit Counters(const RecordWrite& write) {
    if (write.change.write == Write::none) return;
    if (write.usage.active != 0 || write.usage.bytes != 0) {
      const std::string& scope = (write.after ? write.after : write.before)->scope;
      if (write.usage.active != 0) changes_[counter_of_active(scope)] = write.usage.active;
      if (write.usage.bytes != 0) changes_[counter_of_bytes(scope)] = write.usage.bytes;
    }
    const auto& before = write.before;
    const auto& after = write.after;
    const bool is_same = write.change.write == Write::update;
    if (!is_same || before->state != after->state) {
      if (before) --changes_[counter_of(before->state)];
      if (after) ++changes_[counter_of(after->state)];
    }
    if (is_same) return;
    count(before, -1);
    count(after, 1);
    std::erase_if(changes_, [](const auto& one) { return one.second == 0; });
  }
  const std::map<std::string, std::int64_t>& changes() const noexcept { return changes_; }

 private:
  void count(const std::optional<Record>& record, int by) {
    if (!record) return;
    changes_[counter_of_operation(record->operation)] += by;
    changes_[counter_of_generation(record->generation)] += by;
  }
  std::map<std::string, std::int64_t> changes_;
};

char letter(bool is_changed, bool is_there) {
  if (!is_changed) return 'k';
  return is_there ? 'w' : 'x';
}

std::string_view pending_place(const RecordWrite& write, std::string& room) {
  const bool was = write.before && write.before->state == State::pending;
  const bool is = write.after && write.after->state == State::pending;
  if (!is) return was ? "-" : "";
  room = std::to_string(write.after->locked_until.time_since_epoch().count());
  return room;
}

AnswerMark mark_of(const Commit& commit) {
  if (!commit.write.change.response) return commit.kept_mark;
  return idem::mark_of(commit.write.after->response);
}

std::optional<Fence> fence_of(const RecordWrite& write) {
  if (write.after) return write.after->fence();
  return write.before ? write.before->fence() : std::nullopt;
}

}  // namespace

bool begins_attempt(const RecordWrite& write) noexcept {
  if (!write.after || !write.after->attempt) return false;
  return !write.before || write.before->fence() != write.after->fence();
}

std::string to_command(const Commit& commit, const Names& names) {
  const RecordWrite& write = commit.write;
  const bool is_kept = write.change.write == Write::none;
  const bool is_there = !is_kept && write.after.has_value();
  const Counters counters(write);
  char ops[] = {letter(!is_kept, is_there),
                letter(!is_kept && write.change.response, is_there && write.after->response),
                letter(!is_kept && write.change.request, is_there && write.after->stored_request),
                commit.wants_answer ? 'a' : '-',
                commit.wants_request ? 'q' : '-',
                !commit.is_copy && begins_attempt(write) ? 'f' : '-'};

  std::string row;
  if (is_there) append_row(commit.version, *write.after, mark_of(commit), row);
  const std::string answer =
      ops[1] == 'w' ? to_answer_value(write.id, *write.after->response) : std::string();
  std::string request;
  if (ops[2] == 'w') {
    request = *write.after->stored_request;
    append_checksum(write.id, request);
  }
  const Listing before = write.before ? listing_of(*write.before) : Listing{};
  const Listing after = is_there ? listing_of(*write.after) : Listing{};
  std::string room;

  const auto count = counters.changes().size();
  // A server with full memory may refuse only new records.
  const bool is_new = write.change.write == Write::insert;
  const Script& script = is_new ? scripts().reserve : scripts().settle;
  std::string out;
  out.reserve(512 + row.size() + answer.size() + request.size());
  CommandWriter to =
      script.call(out, names.of(write.id).tag, 15 + 2 * count + write.evidence.size());
  to.add(commit.now.time_since_epoch().count());
  if (commit.check_now) {
    to.add(std::int64_t{Millis(limits::redis_clock_slack).count()});
  } else {
    to.add("");
  }
  to.add(commit.generation)
      .add(bytes_of(write.id))
      .add(commit.read_version)
      .add(row)
      .add(std::string_view(ops, sizeof ops))
      .add(answer)
      .add(request)
      .add(static_cast<std::int64_t>(stored_fence(fence_of(write))))
      .add(before.set)
      .add(after.set)
      .add(after.place)
      .add(pending_place(write, room))
      .add(static_cast<std::int64_t>(count));
  for (const auto& [name, change] : counters.changes()) {
    to.add(name).add(change);
  }
  for (const EvidenceEntry& entry : write.evidence) to.add(to_evidence_value(write.id, entry));
  return out;
}

}  // namespace idem::redis
