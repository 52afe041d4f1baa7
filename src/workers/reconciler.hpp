#pragma once

#include "core/evidence/provider_rules.hpp"
#include "core/exchange/backoff.hpp"
#include "metrics/shard.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>
#include <idem/worker_limits.hpp>

#include <atomic>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace idem::workers {

/// Who knows whether an attempt was done, and how to ask (protocol.md §19).
struct Provider {
  /// What it answered.
  struct Heard {
    int status = 0;
    std::string body{};
  };
  /// Why it did not answer.
  struct Silence {
    Silence(std::string sentence) : why(std::move(sentence)) {}  // NOLINT: a sentence is one.
    Silence(metrics::Unanswered kind, std::string sentence)
        : reason(kind), why(std::move(sentence)) {}
    metrics::Unanswered reason = metrics::Unanswered::protocol;
    std::string why;  ///< A sentence for people.
  };
  std::string name{};
  /// Asks once about the record's attempt; changes nothing there. `key` is what the client sent,
  /// or empty. Blocks for a bounded time; safe from several threads. Null: it tells by itself.
  std::function<std::expected<Heard, Silence>(const Record&, std::string_view key)> ask{};
  /// Why it cannot be asked about this record, if so: a sentence for people. That says nothing of
  /// the provider.
  std::function<std::optional<std::string>(const Record&, std::string_view key)> cannot_ask{};
  bool needs_key = false;  ///< It can be asked by the client's key only.
  ResponseMatchers says{};
  RebuildRule rebuild{};
  /// It sends events, of which some may have come while their attempt was under way.
  bool sends_events = false;
  /// How long it may take to show what it did: "not there" counts only when it was seen so long
  /// after the last moment at which the attempt could still send.
  Millis grace = limits::evidence_grace_default;
  /// Pauses between turns at one record: from half to all of it, doubled each time, to the longest.
  Millis retry_first = limits::reconcile_retry_first;
  Millis retry_max = limits::reconcile_retry_max;
  /// After so many turns without an answer that settles it, the record is an operator's.
  int attempts_max = limits::reconcile_attempts_default;
  /// What came of the questions.
  std::shared_ptr<metrics::ProviderCounts> counts = std::make_shared<metrics::ProviderCounts>();
};

/// Ends unknown records by asking those who know. Each turn at a record is planned in the store
/// first, so that of several reconcilers one asks, and a crash only makes it due again.
class Reconciler {
 public:
  /// Null: nobody knows about this record; it is left to people.
  using ProviderOf = std::function<std::shared_ptr<const Provider>(const Record&)>;
  /// The client's key, where it was kept; otherwise empty. Safe from several threads.
  using KeyOf = std::function<std::string(const Record&)>;

  /// When a provider that fails is left alone, and for how long.
  static constexpr Breaker::Rule patience{.failures = limits::breaker_failures,
                                          .pause_first = limits::breaker_pause_first,
                                          .pause_max = limits::breaker_pause_max};

  /// `lanes`: how many are asked at the same time at most. `shard` is counted in by who calls
  /// turn().
  Reconciler(Store& store, LogSink log, metrics::Shard& shard, ProviderOf provider_of, KeyOf key_of,
             unsigned lanes = limits::reconcile_lanes, Breaker::Rule rule = patience);

  /// Looks at one page of unknown records and takes its turn at those that are due. True: it found
  /// some, and there may be more.
  bool turn();

  /// A turn that is under way asks about no further record: it ends with the questions that are
  /// out. Any thread.
  void stop() noexcept { stopping_ = true; }

 private:
  enum class End : std::uint8_t { scheduled, resolved, failed, contradicted };
  struct Task {
    Record record;
    std::shared_ptr<const Provider> provider;
    std::vector<End> ends{};
  };

  std::size_t lanes_for(std::size_t due);
  void note_took(Millis time);
  bool learn_time();
  StoreTime now() const;
  bool is_due(const Record& record, StoreTime now) const;
  /// How a provider has answered so far.
  struct Health {
    Breaker breaker;
    bool is_being_tried = false;  ///< By one question, on which it depends whether others follow.
    /// While it is left alone: attempts of which the log had nothing from it.
    std::set<std::pair<RecordId, Fence>> waiting{};
  };
  bool is_known_to_wait(const Provider& provider, const Record& record);
  enum class Leave : std::uint8_t { no, yes, on_trial };
  Leave may_ask(const Provider& provider, const Record& record);
  /// `answered` none: it was not asked after all.
  void note_asked(const Provider& provider, Leave leave, std::optional<bool> answered);
  using Asked = std::expected<Provider::Heard, Provider::Silence>;
  void count_question(const Task& task, const Asked& heard, StoreTime observed_at);
  void tell_failing(const Provider& provider, metrics::Unanswered reason, const std::string& why);
  struct Untold;
  void keep_why(const Record& record, std::string why, StoreTime observed_at);
  std::optional<Untold> untold_about(const Record& record);
  void note_told(const Record& record);
  void forget_why(const Record& record);
  Health& health_of(const std::string& provider);

  void tell_missing(const Record& record);
  void work(Task& task);
  bool apply_kept(Task& task, bool is_last_word);
  Millis pause_before_next(const Task& task, std::uint32_t turns_done) const;
  std::optional<StoreTime> plan(Task& task);
  void conclude(Task& task, const Provider::Heard& heard, StoreTime observed_at);
  void resolve(Task& task, Finding finding, const Provider::Heard& heard, StoreTime observed_at);
  void wait_for_proof(Task& task, StoreTime observed_at);
  void on_refused(Task& task, const Resolve::Reply& reply, Finding finding);
  void tell_contradiction(Task& task, std::string_view said, std::string_view state);
  void give_up_or_wait(Task& task, const std::string& why, const std::string& evidence,
                       StoreTime observed_at);
  /// From here on it is an operator's.
  void leave_to_people(Task& task, const std::string& why, const std::string& evidence,
                       StoreTime observed_at);
  void count(const std::vector<Task>& tasks);

  Store& store_;
  LogSink log_;
  metrics::Shard& shard_;
  ProviderOf provider_of_;
  KeyOf key_of_;
  unsigned lanes_;
  Breaker::Rule rule_;
  std::set<std::string> missing_;  ///< Providers of records that there are no more, as was told.
  std::optional<RecordId> after_;
  /// The store's clock beside ours, as it was last heard.
  std::optional<StoreTime> store_time_;
  MonotonicTime heard_at_{};
  std::mutex mutex_;
  Millis record_took_ = limits::reconcile_interval;  ///< One turn at one record; of the slow ones.
  std::map<std::string, Health> health_;
  /// Why nothing was answered about an attempt, for the evidence: appended with the next plan.
  struct Untold {
    std::string why{};
    StoreTime observed_at{};
    int lines = 0;  ///< That stand there already.
    bool is_told = false;
  };
  std::map<std::pair<RecordId, Fence>, Untold> untold_;
  std::atomic<bool> stopping_{false};
};

}  // namespace idem::workers
