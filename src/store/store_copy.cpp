#include "store/store_copy.hpp"

#include "core/record/stored_record_codec.hpp"
#include "core/record/stored_response_codec.hpp"
#include "store/journal_copy.hpp"
#include "store/record_rows.hpp"

#include <idem/crash_point.hpp>
#include <idem/limits.hpp>
#include <idem/store_wait.hpp>

#include <algorithm>
#include <latch>
#include <memory>
#include <vector>

namespace idem {
namespace {

using Kind = CopyError::Kind;

/// Few enough that their answers fit into memory, many enough for one commit of a batch.
constexpr std::size_t copied_at_once = 128;
constexpr std::size_t listed_at_once = 1'000;
/// A record whose time ends between two readings is read again.
constexpr int readings_max = 3;

std::unexpected<CopyError> failed(const char* which, const StoreError& error) {
  const bool is_final = error.code == StoreError::Code::damaged;
  return std::unexpected(
      CopyError{is_final ? Kind::damaged : Kind::unavailable, which + (": " + error.detail)});
}

/// Asks all at once; the replies have the order of the verbs.
template <class Verb>
std::vector<std::expected<typename Verb::Reply, StoreError>> ask_all(Store& store,
                                                                     std::vector<Verb> verbs) {
  using Result = std::expected<typename Verb::Reply, StoreError>;
  struct Shared {
    explicit Shared(std::size_t count)
        : results(count, std::unexpected(StoreError{})), left(static_cast<std::ptrdiff_t>(count)) {}
    std::vector<Result> results;
    std::latch left;
  };
  // Shared, because the store's thread is still inside count_down() when the last one wakes us.
  const auto shared = std::make_shared<Shared>(verbs.size());
  for (std::size_t i = 0; i < verbs.size(); ++i) {
    ask(store, std::move(verbs[i]), [shared, i](Result result) {
      shared->results[i] = std::move(result);
      shared->left.count_down();
    });
  }
  about_to_wait();
  shared->left.wait();
  return std::move(shared->results);
}

/// A record as one store has it.
struct Held {
  std::optional<Record> record;
  std::vector<EvidenceEntry> evidence;
  Digest digest{};  ///< Of both; meaningless without a record.
};

/// The stores differ in what a read of an expired record says it is charged for until it is reaped.
void even_out(Record& record) {
  if (record.state == State::expired && record.charged != 0) {
    record.charged = limits::tombstone_charge;
  }
}

Digest digest_of(const Held& held) {
  const Record& record = *held.record;
  FramedDigest digest;
  std::string bytes;
  encode_record(record, bytes);
  digest.add(bytes);
  digest.add(record.stored_request.value_or(std::string()));
  bytes.clear();
  if (record.response) encode_answer(*record.response, bytes);
  digest.add(bytes);
  digest.add(record.response ? std::string_view(record.response->body) : std::string_view());
  for (const EvidenceEntry& entry : held.evidence) {
    digest.add(to_evidence_value(record.id, entry));
  }
  return digest.finish();
}

using Holding = std::expected<std::vector<Held>, CopyError>;

Holding read(Store& store, const char* which, const std::vector<RecordId>& ids) {
  std::vector<Find> finds;
  std::vector<ReadEvidence> logs;
  for (const RecordId& id : ids) {
    finds.push_back({id});
    logs.push_back({id});
  }
  auto records = ask_all(store, std::move(finds));
  auto evidence = ask_all(store, std::move(logs));
  std::vector<Held> all(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!records[i]) return failed(which, records[i].error());
    if (!evidence[i]) return failed(which, evidence[i].error());
    all[i] = {std::move(*records[i]), std::move(*evidence[i])};
    if (!all[i].record) continue;
    even_out(*all[i].record);
    all[i].digest = digest_of(all[i]);
  }
  return all;
}

/// Reads a store's ids in their order.
class Ids {
 public:
  Ids(Store& store, const char* which) : store_(store), which_(which) {}

  /// None at the end.
  std::expected<std::optional<RecordId>, CopyError> first() {
    if (at_ == page_.size() && !is_last_) {
      auto page =
          ask_and_wait(store_, List{.after = after_, .limit = listed_at_once, .damaged = true});
      if (!page) return failed(which_, page.error());
      page_.clear();
      for (const Record& record : *page) page_.push_back(record.id);
      at_ = 0;
      is_last_ = page_.empty();
      if (!is_last_) after_ = page_.back();
    }
    return at_ == page_.size() ? std::nullopt : std::optional(page_[at_]);
  }
  void drop_first() { ++at_; }

 private:
  Store& store_;
  const char* which_;
  std::vector<RecordId> page_;
  std::size_t at_ = 0;
  std::optional<RecordId> after_;
  bool is_last_ = false;
};

class Copy {
 public:
  Copy(Store& from, Store& to, const std::function<void(std::uint64_t)>& progress)
      : from_(from), to_(to), progress_(progress) {}

  std::expected<CopyPass, CopyError> run() {
    const auto census = ask_and_wait(from_, Count{});
    if (!census) return failed("FROM", census.error());
    now_ = census->now;
    // Stores that count their fences give less than one for each microsecond since 1970, and the
    // others have them from the clock. So none that the source has granted is above this.
    const auto micros = std::chrono::microseconds(now_.time_since_epoch()).count();
    fence_floor_ = static_cast<Fence>(micros);
    // Alone and first in each pass: what the pass before wrote is on the disk when it is compared.
    const auto floor = ask_and_wait(to_, PutRecord{.id = {}, .fence_floor = fence_floor_});
    if (!floor) return failed("TO", floor.error());
    auto lines = copy_journals(from_, to_);
    if (!lines) return std::unexpected(std::move(lines.error()));
    pass_.journal_lines = lines->lines;
    pass_.lines_put = lines->put;
    if (auto copied = copy_all(); !copied) return std::unexpected(std::move(copied.error()));
    pass_.source = source_.finish();
    pass_.target = target_.finish();
    return pass_;
  }

 private:
  using Done = std::expected<void, CopyError>;

  Done copy_all() {
    Ids theirs(from_, "FROM");
    Ids ours(to_, "TO");
    std::vector<RecordId> ids;
    for (;;) {
      const auto a = theirs.first();
      if (!a) return std::unexpected(a.error());
      const auto b = ours.first();
      if (!b) return std::unexpected(b.error());
      const bool is_end = !*a && !*b;
      if (!is_end) {
        const RecordId next = !*b ? **a : !*a ? **b : std::min(**a, **b);
        if (*a && **a == next) theirs.drop_first();
        if (*b && **b == next) ours.drop_first();
        ids.push_back(next);
      }
      if (ids.size() < copied_at_once && !is_end) continue;
      if (auto copied = copy(ids); !copied) return copied;
      ids.clear();
      progress_(pass_.records);
      if (is_end) return {};
    }
  }

  Done copy(const std::vector<RecordId>& ids) {
    if (ids.empty()) return {};
    auto theirs = read(from_, "FROM", ids);
    if (!theirs) return std::unexpected(std::move(theirs.error()));
    auto ours = read(to_, "TO", ids);
    if (!ours) return std::unexpected(std::move(ours.error()));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      for (int readings = 1; readings < readings_max && !is_alike((*theirs)[i], (*ours)[i]) &&
                             ends_by_itself((*theirs)[i], (*ours)[i]);
           ++readings) {
        if (auto again = read_again(ids[i], (*theirs)[i], (*ours)[i]); !again) return again;
      }
    }
    if (auto put = put_all(ids, *theirs, *ours); !put) return put;
    crash_point(CrashPoint::copy_put);
    for (std::size_t i = 0; i < ids.size(); ++i) note(ids[i], (*theirs)[i], (*ours)[i]);
    return {};
  }

  /// Time changes how such a record reads, and the two were not read in one moment.
  static bool ends_by_itself(const Held& theirs, const Held& ours) {
    const auto is_settled = [](const Held& held) {
      return !held.record || held.record->state == State::completed ||
             held.record->state == State::expired || held.record->state == State::failed_retryable;
    };
    return ours.record && is_settled(theirs) && is_settled(ours);
  }

  Done read_again(const RecordId& id, Held& theirs, Held& ours) {
    auto again = read(from_, "FROM", {id});
    if (!again) return std::unexpected(std::move(again.error()));
    theirs = std::move(again->front());
    again = read(to_, "TO", {id});
    if (!again) return std::unexpected(std::move(again.error()));
    ours = std::move(again->front());
    return {};
  }

  bool is_running(const Held& held) const {
    return held.record && held.record->state == State::in_progress &&
           held.record->locked_until > now_;
  }

  static bool is_alike(const Held& theirs, const Held& ours) {
    if (theirs.record.has_value() != ours.record.has_value()) return false;
    return !theirs.record || theirs.digest == ours.digest;
  }

  Done put_all(const std::vector<RecordId>& ids, const std::vector<Held>& theirs,
               std::vector<Held>& ours) {
    std::vector<PutRecord> puts;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (is_running(theirs[i]) || is_alike(theirs[i], ours[i])) continue;
      const auto& log = theirs[i].evidence;
      const auto& has = ours[i].evidence;
      if (theirs[i].record && !std::equal(has.begin(), has.end(), log.begin(),
                                          log.begin() + static_cast<std::ptrdiff_t>(
                                                            std::min(has.size(), log.size())))) {
        return std::unexpected(CopyError{
            Kind::refused, "TO: the decisions about the record " + to_hex(ids[i].bytes) +
                               " are not those of FROM: begin again with a store that does not "
                               "exist yet"});
      }
      puts.push_back(put_of(ids[i], theirs[i], has.size()));
      places.push_back(i);
    }
    const auto replies = ask_all(to_, std::move(puts));
    for (std::size_t n = 0; n < replies.size(); ++n) {
      if (!replies[n]) return failed("TO", replies[n].error());
      if (!replies[n]->put) return std::unexpected(somebody_writes());
      const std::size_t i = places[n];
      if (!theirs[i].record) {
        ++pass_.removed;
        ours[i].record.reset();
        continue;
      }
      ++pass_.put;
      pass_.lines_put += theirs[i].evidence.size() - ours[i].evidence.size();
      ours[i] = theirs[i];
    }
    return {};
  }

  PutRecord put_of(const RecordId& id, const Held& theirs, std::size_t behind) const {
    PutRecord put{.id = id, .record = theirs.record, .behind = behind, .fence_floor = fence_floor_};
    if (!theirs.record) return put;
    put.fence_floor = std::max(put.fence_floor, theirs.record->fence().value_or(0));
    put.evidence.assign(theirs.evidence.begin() + static_cast<std::ptrdiff_t>(behind),
                        theirs.evidence.end());
    return put;
  }

  static CopyError somebody_writes() { return {Kind::refused, "TO: somebody else writes to it"}; }

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
  const std::function<void(std::uint64_t)>& progress_;
  StoreTime now_{};
  Fence fence_floor_ = 0;
  CopyPass pass_;
  FramedDigest source_;
  FramedDigest target_;
};

}  // namespace

std::expected<CopyPass, CopyError> copy_records(
    Store& from, Store& to, const std::function<void(std::uint64_t)>& progress) {
  return Copy(from, to, progress).run();
}

std::expected<void, CopyError> end_overdue(Store& from) {
  for (;;) {
    const auto swept = ask_and_wait(from, Sweep{limits::sweep_batch});
    if (!swept) return failed("FROM", swept.error());
    if (swept->empty()) return {};
  }
}

std::expected<Millis, CopyError> clock_difference(Store& from, Store& to) {
  const auto theirs = ask_and_wait(from, Count{});
  if (!theirs) return failed("FROM", theirs.error());
  const auto ours = ask_and_wait(to, Count{});
  if (!ours) return failed("TO", ours.error());
  return ours->now - theirs->now;
}

}  // namespace idem
