#include "gateway/background/search_index.hpp"

#include "core/record/store_clock.hpp"
#include "loop/store_link.hpp"

#include <idem/search_limits.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <set>

namespace idem::gateway {
namespace {

using metrics::NotIndexed;
using Places = std::vector<SearchSettings::Place>;

FindNote note_of(const GatewaySettings& settings) {
  FindNote note;
  if (!settings.search) return note;
  note.is_on = true;
  for (const auto& place : settings.search->requests) note.requests.push_back(place.text);
  for (const auto& place : settings.search->answers) note.answers.push_back(place.text);
  return note;
}

/// Collects the values of one request or answer.
class Reading {
 public:
  Reading(const Secret& secret, metrics::SearchCounts& counts) : secret_(secret), counts_(counts) {}

  void add(std::string_view value, std::string found_by) {
    if (value.empty()) return;
    if (value.size() > limits::search_value_bytes_max) {
      return counts_.add(NotIndexed::value_too_long);
    }
    found_.push_back({find_name(secret_, value), std::move(found_by)});
  }

  // A place that a body does not have is no failure: the pointers are for all routes.
  void read(std::string_view body, const Places& places, std::string_view kind) {
    if (places.empty() || body.empty()) return;
    if (body.size() > limits::search_body_bytes_max) {
      return counts_.add(NotIndexed::body_too_large);
    }
    if (!check_json(body)) return counts_.add(NotIndexed::body_no_json);
    for (const auto& place : places) {
      const auto found = place.pointer.find(body);
      const auto text = found ? scalar_of(*found) : std::nullopt;
      if (text) add(*text, std::string(kind) + place.text);
    }
  }

  std::vector<Findable> take() { return std::move(found_); }

 private:
  const Secret& secret_;
  metrics::SearchCounts& counts_;
  std::vector<Findable> found_;
};

class LoopSearchIndex final : public SearchIndex {
 public:
  LoopSearchIndex(Loop& loop, GatewayShared& shared, SharedSettings settings)
      : loop_(loop),
        store_(shared.store),
        counts_(shared.observing.registry.search()),
        log_(shared.observing.log) {
    use(std::move(settings));
  }
  ~LoopSearchIndex() override {
    const auto left = open_.load();
    if (left == 0 || !log_) return;
    log_(LogLevel::warning, "search_values_lost", {{"count", left}});
  }

  void use(SharedSettings settings) override {
    if (settings->search) counts_.turn_on();
    {
      const std::lock_guard lock(mutex_);
      settings_ = settings;
    }
    loop_.post([this, wanted = note_of(*settings)]() mutable {
      wanted_ = std::move(wanted);
      if (std::exchange(is_noting_, true)) return;
      loop_.spawn_beside(note_all());
    });
  }

  std::vector<Findable> in_request(const GatewaySettings& settings,
                                   const std::optional<TraceId>& trace,
                                   std::string_view body) override {
    if (!settings.search) return {};
    Reading reading(store_.identity().secret, counts_);
    if (trace) reading.add(to_hex(trace->bytes), std::string(found_by_trace));
    reading.read(body, settings.search->requests, found_in_request);
    return reading.take();
  }

  std::vector<Findable> in_ending(const GatewaySettings& settings, const StoreCall& call) override {
    if (!settings.search) return {};
    Reading reading(store_.identity().secret, counts_);
    const auto* complete = std::get_if<Complete>(&call);
    const auto* unknown = std::get_if<MarkUnknown>(&call);
    const auto* resolve = std::get_if<Resolve>(&call);
    if (resolve != nullptr && resolve->response) read_answer(reading, settings, *resolve->response);
    if (unknown != nullptr) {
      reading.add(unknown->upstream_reference, std::string(found_by_reference));
    }
    if (complete != nullptr) {
      reading.add(complete->upstream_reference, std::string(found_by_reference));
      read_answer(reading, settings, complete->response);
    }
    return reading.take();
  }

  bool is_new(const RecordId& pending) override {
    const std::lock_guard lock(mutex_);
    if (!pending_.insert(pending).second) return false;
    pending_in_order_.push_back(pending);
    if (pending_in_order_.size() > limits::search_pending_max) {
      pending_.erase(pending_in_order_.front());
      pending_in_order_.pop_front();
    }
    return true;
  }

  // The record is forgotten on the day of its tombstone's end, or later if it takes long to
  // complete; the reaping process keeps what is still there (workers/forgetter.hpp).
  void add(const RecordId& id, const Route& route, std::vector<Findable> values) override {
    if (values.empty()) return;
    queue(id, find_day(wall_time() + route.retention + route.tombstone), std::move(values));
  }

  Store& indexed() noexcept override { return indexed_; }
  bool drained() const noexcept override { return open_.load() == 0; }

 private:
  struct Entry {
    std::string day;  ///< Empty: the record says it.
    FindName name;
    FindLine line;
  };
  /// Queues what orders store. A record's route is not known here.
  class Indexed final : public Store {
   public:
    explicit Indexed(LoopSearchIndex& index) : index_(index) {}

    void call(StoreCall what, StoreCompletion done) override {
      const auto* order = std::get_if<Resolve>(&what);
      const SharedSettings settings = order != nullptr ? index_.settings() : nullptr;
      auto values = settings ? index_.in_ending(*settings, what) : std::vector<Findable>();
      if (values.empty()) return index_.store_.call(std::move(what), std::move(done));
      const RecordId id = order->id;
      index_.store_.call(std::move(what), [this, id, values = std::move(values),
                                           done = std::move(done)](StoreResult result) mutable {
        const auto* reply = result ? std::get_if<Resolve::Reply>(&*result) : nullptr;
        const bool is_stored = reply != nullptr && reply->verdict == Resolve::Verdict::done;
        if (is_stored) index_.queue(id, {}, std::move(values));
        done(std::move(result));
      });
    }
    void watch(std::shared_ptr<Watcher> watcher) override {
      index_.store_.watch(std::move(watcher));
    }
    const Identity& identity() const noexcept override { return index_.store_.identity(); }
    Transactions* transactions() noexcept override { return index_.store_.transactions(); }
    std::size_t lifecycle_slice() const noexcept override {
      return index_.store_.lifecycle_slice();
    }
    std::optional<std::uint64_t> asked() const noexcept override { return index_.store_.asked(); }

   private:
    LoopSearchIndex& index_;
  };

  SharedSettings settings() {
    const std::lock_guard lock(mutex_);
    return settings_;
  }

  void read_answer(Reading& reading, const GatewaySettings& settings,
                   const StoredResponse& response) {
    const auto& places = settings.search->answers;
    if (response.body_stored) {
      reading.read(response.body, places, found_in_answer);
    } else if (!places.empty()) {
      counts_.add(NotIndexed::body_not_kept);
    }
  }

  void queue(const RecordId& id, const std::string& day, std::vector<Findable> values) {
    {
      const std::lock_guard lock(mutex_);
      for (Findable& value : values) {
        if (waiting_.size() >= limits::search_waiting_max) {
          counts_.add(NotIndexed::waiting_full);
          continue;
        }
        waiting_.push_back({day, value.name, {id, std::move(value.found_by)}});
        open_.fetch_add(1);
      }
    }
    if (!woken_.exchange(true)) loop_.post([this] { start_writes(); });
  }

  enum class Looked : std::uint8_t { is_there, is_full, may_append, failed };

  void start_writes() {
    woken_.store(false);
    while (writes_ < limits::search_writes_max) {
      auto entry = take();
      if (!entry) return;
      ++writes_;
      loop_.spawn_beside(write(std::move(*entry)));
    }
  }

  std::optional<Entry> take() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return std::nullopt;
    Entry entry = std::move(waiting_.front());
    waiting_.pop_front();
    return entry;
  }

  Task<void> write(Entry entry) {
    auto writing = append(entry);
    const auto failure = co_await writing;
    if (failure) counts_.add(*failure);
    --writes_;
    open_.fetch_sub(1);
    start_writes();
  }

  // Most values are new, so that the first append needs no read before it. One whose reply was lost
  // is looked for, too: what is written twice is shown once.
  Task<std::optional<NotIndexed>> append(const Entry& entry) {
    std::string day = entry.day;
    if (day.empty()) {
      auto finding = day_of(entry.line.id);
      day = co_await finding;
    }
    const std::string journal = find_journal(day, entry.name);
    std::uint64_t behind = 0;
    for (int tries = 0; tries < limits::search_tries_max; ++tries) {
      StoreCall call = AppendLine{journal, behind, entry.line.text()};
      auto asking = ask_store(loop_, store_, call);
      const auto result = co_await asking;
      if (result && std::get<AppendLine::Reply>(*result).appended) co_return std::nullopt;
      if (!result && result.error().is_final()) break;
      if (!result) co_await loop_.sleep(limits::search_retry);
      auto looking = look(journal, entry.line.text(), behind);
      const Looked looked = co_await looking;
      if (looked == Looked::is_there) co_return std::nullopt;
      if (looked == Looked::is_full) co_return NotIndexed::value_common;
    }
    co_return NotIndexed::store_failed;
  }

  /// Of a record that an order has settled. If it cannot be read, the reaping process moves the
  /// line.
  Task<std::string> day_of(RecordId id) {
    StoreCall call = Find{id};
    auto asking = ask_store(loop_, store_, call);
    const auto result = co_await asking;
    const auto* record = result ? &std::get<std::optional<Record>>(*result) : nullptr;
    const bool is_ended = record != nullptr && *record && (*record)->tombstone_until;
    co_return find_day(is_ended ? std::max(*(*record)->tombstone_until, wall_time()) : wall_time());
  }

  Task<Looked> look(const std::string& journal, std::string text, std::uint64_t& behind) {
    // One more than a search shows: it says that there are more.
    StoreCall call = ReadLines{journal, 0, limits::search_lines_max + 1};
    auto asking = ask_store(loop_, store_, call);
    const auto result = co_await asking;
    if (!result) co_return Looked::failed;
    const auto& reply = std::get<ReadLines::Reply>(*result);
    if (std::ranges::find(reply.lines, text, &JournalLine::bytes) != reply.lines.end()) {
      co_return Looked::is_there;
    }
    if (reply.last > limits::search_lines_max) co_return Looked::is_full;
    behind = reply.last;
    co_return Looked::may_append;
  }

  // A search says from when on which values are indexed. Every change is noted, also that nothing
  // is indexed any more; a store that never had a search gets no note.
  Task<void> note_all() {
    std::optional<FindNote> noted;
    while (noted != wanted_) {
      const FindNote note = wanted_;
      auto noting = note_one(note);
      const bool done = co_await noting;
      if (done) noted = note;
      if (!done) co_await loop_.sleep(limits::search_retry);
    }
    is_noting_ = false;
  }

  Task<bool> note_one(const FindNote& note) {
    auto reading = read_notes(0);
    auto end = co_await reading;
    if (!end) co_return end.error().is_final();
    FindNote former;
    if (end->last > 0) {
      auto reading_last = read_notes(end->last - 1);
      end = co_await reading_last;
      if (!end) co_return end.error().is_final();
      if (!end->lines.empty()) former = FindNote::parse(end->lines.back().bytes);
    }
    if (former == note) co_return true;
    // If another process has noted its settings meanwhile, nothing is appended: read again.
    StoreCall call = AppendLine{std::string(find_notes), end->last, note.text()};
    auto asking = ask_store(loop_, store_, call);
    const auto result = co_await asking;
    if (!result) co_return result.error().is_final();
    co_return std::get<AppendLine::Reply>(*result).appended;
  }

  Task<std::expected<ReadLines::Reply, StoreError>> read_notes(std::uint64_t after) {
    StoreCall call = ReadLines{std::string(find_notes), after, 1};
    auto asking = ask_store(loop_, store_, call);
    auto result = co_await asking;
    if (!result) co_return std::unexpected(std::move(result.error()));
    co_return std::get<ReadLines::Reply>(std::move(*result));
  }

  Loop& loop_;
  Store& store_;
  metrics::SearchCounts& counts_;
  LogSink log_;
  Indexed indexed_{*this};
  std::mutex mutex_;
  SharedSettings settings_;
  std::deque<Entry> waiting_;
  std::set<RecordId> pending_;  ///< Seen by is_new().
  std::deque<RecordId> pending_in_order_;
  std::atomic<std::size_t> open_{0};  ///< Waiting, or being written.
  std::atomic<bool> woken_{false};
  // Of the loop's thread:
  std::size_t writes_ = 0;
  FindNote wanted_;
  bool is_noting_ = false;
};

}  // namespace

std::unique_ptr<SearchIndex> make_search_index(Loop& loop, GatewayShared& shared,
                                               SharedSettings settings) {
  return std::make_unique<LoopSearchIndex>(loop, shared, std::move(settings));
}

}  // namespace idem::gateway
