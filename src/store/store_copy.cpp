#include "store/store_copy.hpp"

#include "core/transitions/transitions.hpp"
#include "store/copied_records.hpp"
#include "store/copy_patience.hpp"
#include "store/journal_copy.hpp"

#include <idem/crash_point.hpp>
#include <idem/limits.hpp>
#include <idem/store_wait.hpp>

#include <algorithm>
#include <iterator>
#include <vector>

namespace idem {
namespace {

using Kind = CopyError::Kind;

/// Records that are read and put at once: few enough that their answers fit into memory, many
/// enough for one commit of all.
constexpr std::size_t at_once_min = 16;
constexpr std::size_t at_once_max = 1'024;
constexpr std::size_t many_bytes = 16UL << 20U;
/// A clock is read before what it is compared with.
constexpr Millis clock_slack{1'000};

std::size_t bytes_of(const Held& held) {
  if (!held.record) return 0;
  const auto& request = held.record->stored_request;
  const auto& response = held.record->response;
  return (request ? request->size() : 0) + (response ? response->body.size() : 0);
}

class Copy {
 public:
  Copy(Store& from, Store& to, CopySource source, const CopyProgress& progress, Millis patience)
      : from_(from), to_(to), source_kind_(source), progress_(progress), patience_(patience) {}

  std::expected<CopyPass, CopyError> run() {
    const auto theirs = ask_and_wait(from_, Count{});
    if (!theirs) return copy_failed("FROM", theirs.error());
    const auto ours = ask_and_wait(to_, Count{});
    if (!ours) return copy_failed("TO", ours.error());
    began_ = MonotonicClock::now();
    now_ = theirs->now;
    later_now_ = std::max(theirs->now, ours->now);
    // Stores that count their fences give less than one for each microsecond since 1970, and the
    // others have them from the clock. So none that the source has granted is above this.
    const auto micros = std::chrono::microseconds(now_.time_since_epoch()).count();
    fence_floor_ = static_cast<Fence>(micros);
    // Alone and first in each pass: what the pass before wrote is on the disk when it is compared.
    // Floor and lines once more, because reading the records may have taken long.
    for (Done (Copy::* const step)() : {&Copy::set_floor, &Copy::copy_lines, &Copy::copy_all,
                                        &Copy::set_floor, &Copy::copy_lines}) {
      if (auto done = (this->*step)(); !done) return std::unexpected(std::move(done.error()));
    }
    pass_.source = source_.finish();
    pass_.target = target_.finish();
    return pass_;
  }

 private:
  using Done = std::expected<void, CopyError>;

  /// Until it is done, or fails for good.
  template <class Step>
  auto patiently(Step step) {
    for (;;) {
      auto done = step();
      if (done || !may_ask_again(done.error())) return done;
    }
  }

  bool may_ask_again(const CopyError& error) {
    if (!patience_.wait(error)) return false;
    ++pass_.asked_again;
    progress_(pass_);
    return true;
  }

  /// Refused if another run works on the target, so this comes before what has no such check.
  Done set_floor() {
    return patiently([this] { return set_floor_once(); });
  }

  Done set_floor_once() {
    const auto floor = ask_and_wait(
        to_,
        PutRecord{.id = {}, .fence_floor = fence_floor_, .generation = to_.identity().generation});
    if (!floor) return copy_failed("TO", floor.error());
    return {};
  }

  Done copy_lines() {
    const auto see = [this](const CopiedLines& so_far, bool was_put) {
      if (was_put) patience_.went_on();
      pass_.journal_lines = so_far.lines;
      progress_(pass_);
    };
    const auto lines = patiently(
        [&] { return copy_journals(from_, to_, {[this] { return set_floor_once(); }, see}); });
    if (!lines) return std::unexpected(lines.error());
    pass_.journal_lines = lines->lines;
    pass_.lines_put += lines->put;
    return {};
  }

  Done copy_all() {
    Ids theirs(from_, "FROM");
    Ids ours(to_, "TO");
    Chunk chunk;
    for (;;) {
      const auto a = patiently([&] { return theirs.first(); });
      if (!a) return std::unexpected(a.error());
      const auto b = patiently([&] { return ours.first(); });
      if (!b) return std::unexpected(b.error());
      const bool is_end = !*a && !*b;
      if (!is_end) {
        const RecordId next = !*b ? **a : !*a ? **b : std::min(**a, **b);
        if (*a && **a == next) theirs.drop_first();
        const bool is_ours = *b && **b == next;
        if (is_ours) ours.drop_first();
        chunk.ids.push_back(next);
        if (is_ours) chunk.ours.push_back(next);
      }
      if (chunk.ids.size() < at_once() && !is_end) continue;
      if (auto copied = copy_patiently(chunk); !copied) return copied;
      chunk = {};
      if (is_end) return {};
    }
  }

  struct Chunk {
    std::vector<RecordId> ids;
    std::vector<RecordId> ours;  ///< Those of them that the target has.
  };

  std::size_t at_once() const { return std::min(at_once_, allowed_); }

  /// What was too much for a store at once is asked of it in parts.
  Done copy_patiently(const Chunk& chunk) {
    std::size_t tried = 0;  // Up to here a try that failed may have put any of them.
    for (std::size_t at = 0; at < chunk.ids.size();) {
      const std::size_t count = std::min(at_once(), chunk.ids.size() - at);
      Chunk part;
      part.ids.assign(chunk.ids.begin() + static_cast<std::ptrdiff_t>(at),
                      chunk.ids.begin() + static_cast<std::ptrdiff_t>(at + count));
      if (at < tried) {
        part.ours = part.ids;
      } else {
        std::ranges::set_intersection(part.ids, chunk.ours, std::back_inserter(part.ours));
      }
      const Done copied = copy(part);
      if (copied) {
        at += count;
        allowed_ = std::min(allowed_ + allowed_ / 16 + 1, at_once_max);
        patience_.went_on();
        progress_(pass_);
        continue;
      }
      if (!may_ask_again(copied.error())) return copied;
      tried = std::max(tried, at + count);
      allowed_ = std::max<std::size_t>(count / 4, 1);
    }
    return {};
  }

  Done copy(const Chunk& chunk) {
    const auto& ids = chunk.ids;
    Reading reading_theirs(from_, "FROM", ids);
    Reading reading_ours(to_, "TO", chunk.ours);
    auto theirs = reading_theirs.wait();
    auto found = reading_ours.wait();
    if (!theirs) return std::unexpected(std::move(theirs.error()));
    if (!found) return std::unexpected(std::move(found.error()));
    std::vector<Held> ours(ids.size());
    for (std::size_t i = 0, n = 0; i < ids.size() && n < chunk.ours.size(); ++i) {
      if (ids[i] == chunk.ours[n]) ours[i] = std::move((*found)[n++]);
    }
    fit_memory(*theirs);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!is_alike((*theirs)[i], ours[i])) meet_in_time((*theirs)[i], ours[i]);
    }
    if (auto ended = end_attempts(ids, *theirs); !ended) return ended;
    if (auto put = put_all(ids, *theirs, ours); !put) return put;
    crash_point(CrashPoint::copy_put);
    for (std::size_t i = 0; i < ids.size(); ++i) note(ids[i], (*theirs)[i], ours[i]);
    return {};
  }

  void fit_memory(const std::vector<Held>& theirs) {
    std::size_t bytes = 0;
    for (const Held& held : theirs) bytes += bytes_of(held);
    if (bytes > many_bytes) at_once_ = std::max(at_once_ / 4, at_once_min);
    if (bytes < many_bytes / 8) at_once_ = std::min(at_once_ * 2, at_once_max);
  }

  /// Time changes how a settled record reads, and the two were not read in one moment, nor by one
  /// clock. Reads both as of a moment that is behind both.
  void meet_in_time(Held& theirs, Held& ours) const {
    const auto since = std::chrono::duration_cast<Millis>(MonotonicClock::now() - began_);
    const StoreTime then = later_now_ + since + clock_slack;
    const auto is_over = [&](const Held& held) {
      if (!held.record) return true;
      const State state = held.record->state;
      const bool is_settled =
          state == State::completed || state == State::expired || state == State::failed_retryable;
      const auto end =
          state == State::expired ? held.record->tombstone_until : held.record->expires_at;
      return is_settled && end && *end <= then;
    };
    if (!is_over(theirs) && !is_over(ours)) return;
    for (Held* const held : {&theirs, &ours}) {
      if (!held->record || !is_over(*held)) continue;
      held->record = transitions::view(std::move(held->record), then);
      if (!held->record) continue;
      even_out(*held->record);
      held->digest = digest_of(*held);
    }
  }

  /// Of a closed source, an attempt past its lease that the next one would resume: its owner may
  /// still be at it, and no fence of a new attempt stops it there. So its token is forgotten there,
  /// as if another attempt had begun. If it has ended since, or a transaction has the record, it
  /// counts as running until the next pass.
  Done end_attempts(const std::vector<RecordId>& ids, std::vector<Held>& theirs) {
    if (source_kind_ != CopySource::closed) return {};
    for (std::size_t i = 0; i < ids.size(); ++i) {
      auto& record = theirs[i].record;
      const bool may_end = record && record->state == State::in_progress &&
                           record->locked_until <= now_ && !transitions::due_at(*record);
      if (!may_end || !record->attempt || record->attempt->token == Token{}) continue;
      PutRecord ended{.id = ids[i],
                      .record = record,
                      .behind = theirs[i].evidence.size(),
                      .generation = from_.identity().generation,
                      .ends = record->attempt->token};
      ended.record->attempt->token = Token{};
      const auto put = ask_and_wait(from_, ended);
      if (!put && put.error().is_final()) return copy_failed("FROM", put.error());
      if (!put || !put->put) continue;
      record->attempt->token = Token{};
      theirs[i].digest = digest_of(theirs[i]);
    }
    return {};
  }

  bool is_running(const Held& held) const {
    if (!held.record || held.record->state != State::in_progress) return false;
    if (source_kind_ == CopySource::serving || held.record->locked_until > now_) return true;
    if (source_kind_ == CopySource::kept) return false;
    // The sweeper ends it, unless another transaction has it.
    const auto& attempt = held.record->attempt;
    return transitions::due_at(*held.record) || (attempt && attempt->token != Token{});
  }

  static bool is_alike(const Held& theirs, const Held& ours) {
    if (theirs.record.has_value() != ours.record.has_value()) return false;
    return !theirs.record || theirs.digest == ours.digest;
  }

  Done put_all(const std::vector<RecordId>& ids, const std::vector<Held>& theirs,
               std::vector<Held>& ours) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!is_running(theirs[i]) && !is_alike(theirs[i], ours[i])) places.push_back(i);
    }
    auto left = put(places, ids, theirs, ours);
    if (!left) return std::unexpected(std::move(left.error()));
    // Of a record that is gone the log may have lines.
    for (const std::size_t i : *left) {
      auto again = Reading(to_, "TO", {ids[i]}).wait();
      if (!again) return std::unexpected(std::move(again.error()));
      ours[i] = std::move(again->front());
    }
    left = put(*left, ids, theirs, ours);
    if (!left) return std::unexpected(std::move(left.error()));
    if (left->empty()) return {};
    return std::unexpected(CopyError{Kind::refused, "TO: another process writes to it"});
  }

  /// The places of those that were not put, because the log has other lines.
  std::expected<std::vector<std::size_t>, CopyError> put(const std::vector<std::size_t>& places,
                                                         const std::vector<RecordId>& ids,
                                                         const std::vector<Held>& theirs,
                                                         std::vector<Held>& ours) {
    std::vector<PutRecord> puts;
    for (const std::size_t i : places) {
      if (!is_continued(ours[i], theirs[i])) {
        return std::unexpected(CopyError{
            Kind::refused, "TO: the decisions about the record " + to_hex(ids[i].bytes) +
                               " are not those of FROM: begin again with a store that does not "
                               "exist yet"});
      }
      puts.push_back(put_of(ids[i], theirs[i], ours[i].evidence.size()));
    }
    const auto replies = Asked<PutRecord>(to_, std::move(puts)).wait();
    std::vector<std::size_t> left;
    for (std::size_t n = 0; n < replies.size(); ++n) {
      const std::size_t i = places[n];
      if (!replies[n]) {
        StoreError error = replies[n].error();
        if (error.code == StoreError::Code::unstorable) {
          error.detail = "it cannot hold the record " + to_hex(ids[i].bytes) + ": " + error.detail;
        }
        return copy_failed("TO", error);
      }
      if (!replies[n]->put) {
        left.push_back(i);
      } else if (!theirs[i].record) {
        ++pass_.removed;
        ours[i].record.reset();
      } else {
        ++pass_.put;
        pass_.lines_put += theirs[i].evidence.size() - ours[i].evidence.size();
        ours[i] = theirs[i];
      }
    }
    return left;
  }

  /// The source's log has the target's lines, and perhaps more.
  static bool is_continued(const Held& ours, const Held& theirs) {
    if (!theirs.record) return true;
    return ours.evidence.size() <= theirs.evidence.size() &&
           std::equal(ours.evidence.begin(), ours.evidence.end(), theirs.evidence.begin());
  }

  PutRecord put_of(const RecordId& id, const Held& theirs, std::size_t behind) const {
    PutRecord put{.id = id,
                  .record = theirs.record,
                  .behind = behind,
                  .fence_floor = fence_floor_,
                  .generation = to_.identity().generation};
    if (!theirs.record) return put;
    put.fence_floor = std::max(put.fence_floor, theirs.record->fence().value_or(0));
    put.evidence.assign(theirs.evidence.begin() + static_cast<std::ptrdiff_t>(behind),
                        theirs.evidence.end());
    return put;
  }

  void note(const RecordId& id, const Held& theirs, const Held& ours) {
    if (is_running(theirs)) {
      ++pass_.running;
      const StoreTime until = theirs.record->locked_until;
      pass_.runs_until = std::max(pass_.runs_until.value_or(until), until);
      return;
    }
    if (!theirs.record) return;
    const State state = theirs.record->state;
    const bool is_open = state != State::completed && state != State::expired;
    if (is_open && !theirs.record->recovery_point.empty()) ++pass_.in_phases;
    ++pass_.records;
    pass_.evidence += theirs.evidence.size();
    add(source_, id, theirs);
    add(target_, id, ours);
  }

  static void add(FramedDigest& to, const RecordId& id, const Held& held) {
    to.add({reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()});
    to.add(view_of(held.digest));
  }

  Store& from_;
  Store& to_;
  CopySource source_kind_;
  const CopyProgress& progress_;
  CopyPatience patience_;
  MonotonicTime began_{};
  StoreTime now_{};        ///< Of the source, at the beginning.
  StoreTime later_now_{};  ///< The later one of both.
  Fence fence_floor_ = 0;
  std::size_t at_once_ = 8 * at_once_min;  ///< That fit into memory.
  std::size_t allowed_ = at_once_max;      ///< That the stores answer.
  CopyPass pass_;
  FramedDigest source_;
  FramedDigest target_;
};

}  // namespace

std::expected<CopyPass, CopyError> copy_records(Store& from, Store& to, CopySource source,
                                                const CopyProgress& progress, Millis patience) {
  return Copy(from, to, source, progress, patience).run();
}

CopyError copy_error(const char* which, const StoreError& error) {
  CopyError made{Kind::unavailable, which + (": " + error.detail)};
  if (error.code == StoreError::Code::damaged) made.kind = Kind::damaged;
  if (error.code == StoreError::Code::unstorable) made.kind = Kind::refused;
  if (error.code != StoreError::Code::refused) return made;
  return {Kind::refused, made.why + "; another idem store copy works on it, or has finished it"};
}

std::expected<void, CopyError> end_overdue(Store& from) {
  for (;;) {
    const auto swept = ask_and_wait(from, Sweep{limits::sweep_batch});
    if (!swept) return copy_failed("FROM", swept.error());
    if (swept->empty()) return {};
  }
}

std::expected<Millis, CopyError> clock_difference(Store& from, Store& to) {
  const auto theirs = ask_and_wait(from, Count{});
  if (!theirs) return copy_failed("FROM", theirs.error());
  const auto ours = ask_and_wait(to, Count{});
  if (!ours) return copy_failed("TO", ours.error());
  return ours->now - theirs->now;
}

}  // namespace idem
