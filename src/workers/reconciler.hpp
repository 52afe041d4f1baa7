#pragma once

#include "core/evidence/provider_rules.hpp"
#include "core/exchange/backoff.hpp"
#include "metrics/shard.hpp"
#include "workers/failures.hpp"

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

/// A provider that knows whether an attempt ran, and how to ask it (protocol.md §19).
struct Provider {
  /// An answer of HTTP, whatever its status.
  struct Answer {
    int status = 0;
    std::string body{};
  };
  /// Why there is no answer.
  struct NoAnswer {
    NoAnswer(std::string sentence) : why(std::move(sentence)) {}  // NOLINT: a sentence is one.
    NoAnswer(metrics::Unanswered kind, std::string sentence)
        : reason(kind), why(std::move(sentence)) {}
    metrics::Unanswered reason = metrics::Unanswered::protocol;
    std::string why;  ///< A sentence for people.
  };
  std::string name{};
  /// Asks once about the record's attempt; changes nothing there. `key` is what the client sent,
  /// or empty. Blocks for a bounded time; safe from several threads. Null: it only sends events.
  std::function<std::expected<Answer, NoAnswer>(const Record&, std::string_view key)> ask{};
  /// Why nothing can be asked about this record: a sentence for people. None: it can be asked. The
  /// reason lies in the record, not in the provider.
  std::function<std::optional<std::string>(const Record&, std::string_view key)> cannot_ask{};
  bool needs_key = false;  ///< Its URL contains the client's key.
  ResponseMatchers says{};
  RebuildRule rebuild{};
  /// It sends events. Some may arrive while their attempt is still running.
  bool sends_events = false;
  /// How long the provider may take to list what it did. The reconciler accepts "not there" only if
  /// it was observed at least this long after the end of the lease.
  Millis grace = limits::evidence_grace_default;
  /// Pause between two turns at one record: random, from half of it to all of it; doubled after
  /// each turn, up to `retry_max`.
  Millis retry_first = limits::reconcile_retry_first;
  Millis retry_max = limits::reconcile_retry_max;
  /// After so many turns without an answer that settles the record, the reconciler leaves it to
  /// operators.
  int attempts_max = limits::reconcile_attempts_default;
  /// Counts of its answers and failures.
  std::shared_ptr<metrics::ProviderCounts> counts = std::make_shared<metrics::ProviderCounts>();
};

/// Settles unknown records by asking providers. Each turn at a record is planned in the store
/// first: of several reconcilers one asks, and after a crash the record becomes due again.
class Reconciler {
 public:
  /// Null: no provider knows about this record; it is left to operators.
  using ProviderOf = std::function<std::shared_ptr<const Provider>(const Record&)>;
  /// The client's key if the record contains it sealed, otherwise empty. Safe from several threads.
  using KeyOf = std::function<std::string(const Record&)>;

  /// After how many failures a provider is not asked, and for how long.
  static constexpr Breaker::Rule breaker_rule{.failures = limits::breaker_failures,
                                              .pause_first = limits::breaker_pause_first,
                                              .pause_max = limits::breaker_pause_max};

  /// `lanes`: how many questions run at the same time at most. Only the thread that calls turn()
  /// counts in `shard`.
  Reconciler(Store& store, LogSink log, metrics::Shard& shard, ProviderOf provider_of, KeyOf key_of,
             unsigned lanes = limits::reconcile_lanes, Breaker::Rule rule = breaker_rule);

  /// Reads one page of unknown records and works on those that are due. True: some were due, and
  /// there may be more.
  bool turn();

  /// How long to rest after a turn without more to do: longer after each turn in a row for which
  /// the store did not answer. The thread of turn().
  Millis rest() const noexcept { return failures_.rest(limits::reconcile_interval); }

  /// A running turn() asks about no further record and returns after the questions that are already
  /// sent. Any thread.
  void stop() noexcept { stopping_ = true; }

 private:
  enum class End : std::uint8_t { scheduled, resolved, failed, contradicted };
  struct Task {
    Record record;
    std::shared_ptr<const Provider> provider;
    std::vector<End> ends{};
  };

  std::size_t lanes_for(std::size_t due);
  void rest_before_next();
  void note_took(Millis time);
  void note_failure(const StoreError& error);
  bool learn_time();
  StoreTime now() const;
  bool is_due(const Record& record, StoreTime now) const;
  /// How reliably a provider has answered so far.
  struct Health {
    Breaker breaker;
    bool is_being_tried = false;  ///< By one question, which decides whether others follow.
    /// While it is not asked: attempts for which the evidence log has no kept event.
    std::set<std::pair<RecordId, std::optional<Fence>>> waiting{};
    /// Attempts whose record is damaged: no plan can be made, so they would be due for ever.
    std::set<std::pair<RecordId, std::optional<Fence>>> damaged{};
  };
  /// Reports it once, and leaves it alone while this process lives.
  void leave_damaged(const Task& task, const StoreError& error);
  bool is_known_to_wait(const Provider& provider, const Record& record);
  enum class Leave : std::uint8_t { no, yes, on_trial };
  Leave may_ask(const Provider& provider, const Record& record);
  /// `answered` none: no question was sent after all.
  void note_asked(const Provider& provider, Leave leave, std::optional<bool> answered);
  using Asked = std::expected<Provider::Answer, Provider::NoAnswer>;
  void count_question(const Task& task, const Asked& answer, StoreTime observed_at);
  void count_failure(const Provider& provider, metrics::Unanswered reason, const std::string& why);
  struct Note;
  void keep_note(const Record& record, std::string why, StoreTime observed_at);
  std::optional<Note> note_to_write(const Record& record);
  void mark_written(const Record& record);
  void forget_note(const Record& record);
  Health& health_of(const std::string& provider);

  void log_missing_provider(const Record& record);
  void work(Task& task);
  bool apply_kept(Task& task, bool cannot_ask);
  Millis pause_before_next(const Task& task, std::uint32_t turns_done) const;
  std::optional<StoreTime> plan(Task& task);
  void conclude(Task& task, const Provider::Answer& answer, StoreTime observed_at);
  void resolve(Task& task, Finding finding, const Provider::Answer& answer, StoreTime observed_at);
  void wait_for_proof(Task& task, StoreTime observed_at);
  void on_refused(Task& task, const Resolve::Reply& reply, Finding finding);
  void report_contradiction(Task& task, std::string_view said, std::string_view state);
  void give_up_or_wait(Task& task, const std::string& why, const std::string& evidence,
                       StoreTime observed_at);
  /// Ends the turns: from here on only an operator or an event settles the record.
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
  std::set<std::string> missing_;  ///< Names in records that no provider has; each is logged once.
  Failures failures_{{"reconcile_failed", "reconcile_recovered"}};
  std::optional<RecordId> after_;
  /// The store's time in its last census, and our time of that reply.
  std::optional<StoreTime> store_time_;
  MonotonicTime last_reply_at_{};
  std::mutex mutex_;
  std::chrono::steady_clock::time_point next_begins_{};  ///< The next record's work, on any thread.
  Millis record_took_ = limits::reconcile_interval;      ///< Of recent slow turns at one record.
  std::map<std::string, Health> health_;
  /// Why a question about an attempt got no answer. The next plan writes it into the evidence log.
  struct Note {
    std::string why{};
    StoreTime observed_at{};
    int lines = 0;  ///< Already written for this attempt.
    bool is_written = false;
  };
  std::map<std::pair<RecordId, std::optional<Fence>>, Note> notes_;
  std::atomic<bool> stopping_{false};
};

}  // namespace idem::workers
