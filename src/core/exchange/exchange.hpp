#pragma once

#include "core/exchange/answers.hpp"
#include "core/exchange/policy.hpp"

#include <idem/store.hpp>

#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>

/// The protocol of one keyed request as a pure machine: exchange.on(event, now) → action. It
/// performs no I/O, reads no clock and starts no timer; whoever drives it carries the one returned
/// action out and reports what came of it. The same machine serves the gateway, tests and
/// simulation.
namespace idem {

struct ExchangeSettings {
  Millis dispatch_timeout{};  ///< From the first byte to the last of the answer.
  Millis renew_interval{};    ///< A third of the lease.
  /// Stored although withheld by default. Not used any more once the answer is being settled: the
  /// duty to settle may outlive them.
  std::span<const std::string> replay_fields{};
  AnswerPolicy answers{};
  bool store_body = true;  ///< False: an answer is recorded without its body (T37).
  /// How long a duplicate is kept waiting for the attempt that it met, from start(); 0: not at all.
  Millis wait{};
  /// What `Prefer: wait` asked for and gets: said in the answer to those whom it concerned.
  std::optional<std::chrono::seconds> wait_applied{};
  /// Who would wait for work that goes on without it hears 202 and where to look (§7, "async").
  bool respond_async = false;
  /// `Prefer: respond-async` asked for that: said in such an answer.
  bool async_applied = false;
  /// When to look again at work that goes on in the background.
  Millis look_again{1000};
  /// How long a claimed request rests at least when it is released.
  Millis rest{};
  /// Unknown outcomes are asked about, from so soon on; none: by nobody.
  std::optional<Millis> reconcile_in{};
  /// Said instead where the store makes no record for want of room: the reserve allows none.
  std::optional<Answer> no_record{};
  Millis settle_retry_first{50};
  Millis settle_retry_max{2000};
};

// ---- what the driver reports ----

/// A store call was answered; `StoreResult` holds the verb's reply.
struct StoreAnswered {
  StoreResult result;
};
/// The delay of an AskLater is over.
struct RetryDue {};
/// A connection to the upstream is open; not one byte was sent on it.
struct UpstreamReady {};
/// No connection, or the kernel accepted zero bytes of the request: provably not executed.
struct UpstreamNotReached {
  std::string detail;
};
/// A complete final answer (end-to-end fields only, `Idem-*` already taken out).
struct UpstreamAnswered {
  Answer answer;
  bool while_sending = false;
  std::optional<UpstreamSays> says;
  std::string reference;
};
/// A final head whose body crossed the storing limit; the rest still waits in the connection.
struct UpstreamOversize {
  UpstreamAnswered head;  ///< `answer.body` is not used.
};
/// At least one byte was accepted and no complete answer came.
struct UpstreamLost {
  enum class How : std::uint8_t { timeout, closed, malformed, cut, unframed };
  How how = How::closed;
  std::optional<int> status;  ///< Of a head that was seen before the body was cut.
};
/// The work committed its own completion, together with its rows (§17): nothing is left to settle.
struct WorkCommitted {
  Answer answer;
  OwnerReply reply;
};
/// The work ended with this answer, whatever its status; without `keeps_body` the record says only
/// that it ran, and the body goes to this caller alone.
struct WorkAnswered {
  Answer answer;
  bool keeps_body = true;
};
/// The work cannot tell whether it was done.
struct WorkUnknown {
  std::string error_code;
  std::string reference;
};
/// The attempt ends here, with its lease, and says nothing: the record stays as it is, for another
/// attempt to take up (§16). The client hears what the record says.
struct WorkLeft {};
/// The client will not be kept waiting any longer; the attempt must still be settled.
struct ClientDeadline {};

/// After WaitFor: its record as it was read after a change, or why it could not be; null where
/// there is none any more. One read may serve many.
struct Woken {
  std::expected<std::shared_ptr<const Record>, StoreError> record;
};
/// After WaitFor: the time is over, or nobody can be kept waiting now.
struct WaitOver {};

using ExchangeEvent =
    std::variant<StoreAnswered, RetryDue, UpstreamReady, UpstreamNotReached, UpstreamAnswered,
                 UpstreamOversize, UpstreamLost, WorkAnswered, WorkCommitted, WorkUnknown, WorkLeft,
                 ClientDeadline, Woken, WaitOver>;

// ---- what the driver shall do ----

struct Ask {
  StoreCall call;
};
struct AskLater {
  Millis delay;  ///< Then report RetryDue.
};
/// Get a connection; report UpstreamReady or UpstreamNotReached.
struct Connect {};
/// Send the request now, once, and report how it ended. Look at the clock once more, directly
/// before the first byte: past `not_after` nothing may be sent, which is UpstreamNotReached.
struct Send {
  Attempt attempt;
  RecordId id;
  MonotonicTime not_after;
};
/// Another one's attempt runs, and this request waits for that one alone (§7). Watch its record,
/// then read it: it may have changed since. Report Woken at every change, WaitOver at `until`.
struct WaitFor {
  RecordId id;
  Fence fence = 0;
  MonotonicTime until;
};
/// Tell the client. If owes_settlement(), go on with RetryDue until Done.
struct AnswerClient {
  Answer answer;
};
/// Oversize: the settling is durable; send this head and stream the waiting body after it.
struct StreamThrough {
  Answer head;
};
struct Done {};

using ExchangeAction =
    std::variant<Ask, AskLater, Connect, Send, WaitFor, AnswerClient, StreamThrough, Done>;

class Exchange {
 public:
  Exchange(const ExchangeSettings& settings, Reserve reserve);
  /// To be stored, and run by whoever claims it (§3).
  Exchange(const ExchangeSettings& settings, Accept accept);
  /// An attempt that was claimed, undispatched, for `lease`. Nobody waits for its answer.
  Exchange(const ExchangeSettings& settings, const Claimed& claimed, Millis lease);

  /// The first action. `now` must be read before it is carried out; for what was claimed, before
  /// that was asked for.
  ExchangeAction start(MonotonicTime now);
  ExchangeAction on(ExchangeEvent event, MonotonicTime now);

  /// A renewal to ask for, when one is due and the attempt is running. Its reply goes to renewed().
  std::optional<Renew> heartbeat(MonotonicTime now);
  void renewed(const std::expected<OwnerReply, StoreError>& result, MonotonicTime asked_at);

  /// Until when nobody else may execute; meaningful while the attempt runs.
  MonotonicTime lease_end() const noexcept { return lease_end_; }

  /// True after an AnswerClient that left an attempt unsettled (§4).
  bool owes_settlement() const noexcept { return phase_ == Phase::owing; }
  const RecordId& id() const noexcept { return reserve_.id; }
  /// True once this attempt is known to be completed with an answer that an event contradicts.
  bool is_contradicted() const noexcept { return contradicted_; }

 private:
  enum class Phase : std::uint8_t {
    reserving,
    marking,
    connecting,
    sending,
    settling,
    reading,
    waiting,
    owing,
    done
  };
  /// Another one's attempt that this request met.
  struct Met {
    Fence fence = 0;
    StoreTime locked_until;
    StoreTime store_time;  ///< The store's clock at `at`; the two run alike for so short a time.
    MonotonicTime at;
  };

  ExchangeAction on_store(StoreResult result, MonotonicTime now);
  ExchangeAction on_reserve(StoreResult result, MonotonicTime now);
  ExchangeAction on_outcome(ReserveOutcome outcome, MonotonicTime now);
  ExchangeAction on_marked(StoreResult result, MonotonicTime now);
  ExchangeAction on_settle(StoreResult result);
  ExchangeAction on_read(StoreResult result);
  ExchangeAction on_ready(MonotonicTime now);
  ExchangeAction on_answered(UpstreamAnswered event);
  ExchangeAction on_oversize(UpstreamOversize event);
  ExchangeAction conclude(UpstreamAnswered event);
  ExchangeAction on_lost(const UpstreamLost& event, MonotonicTime now);
  ExchangeAction on_work_answered(WorkAnswered event);
  ExchangeAction on_committed(WorkCommitted event);
  ExchangeAction on_unknown(WorkUnknown event);
  ExchangeAction on_left(MonotonicTime now);
  ExchangeAction on_deadline();
  ExchangeAction settle(StoreCall call, Answer answer);
  StoreCall settlement() const;
  ExchangeAction release_unsent(std::string error_code, std::string detail, MonotonicTime now);
  StoreCall asking() const;
  Millis rest_before_next(const Answer& answer) const;
  bool goes_on() const noexcept;
  ExchangeAction retry_later();
  ExchangeAction finish(Answer answer);
  ExchangeAction finish_damaged(const StoreError& error);
  std::optional<ExchangeAction> release_elsewhere(const OwnerReply& reply);
  ExchangeAction settled_answer(const OwnerReply& reply);
  ExchangeAction answer_from(const Record& record);
  ExchangeAction on_running(const InProgress& running, MonotonicTime now);
  ExchangeAction on_pending(const Pending& pending, MonotonicTime now);
  ExchangeAction on_woken(const Woken& woken, MonotonicTime now);
  ExchangeAction on_background(const std::shared_ptr<const Record>& record, MonotonicTime now);
  ExchangeAction wait_on(MonotonicTime now);
  ExchangeAction still_running(MonotonicTime now);
  ExchangeAction finish_waiting(Answer answer);
  Millis until(StoreTime moment, MonotonicTime now) const;
  Answer outcome_unknown(int status, std::string detail,
                         std::optional<Millis> reconcile_in = {}) const;

  ExchangeSettings settings_;
  Reserve reserve_;
  std::optional<std::string> to_store_;  ///< Of an Accept.
  bool claimed_ = false;
  bool in_background_ = false;  ///< What is waited for goes on by itself, whoever's attempt it is.
  Phase phase_ = Phase::reserving;
  Attempt attempt_;
  MonotonicTime started_at_{};
  MonotonicTime lease_end_{};  ///< Counted from before the reserve was asked: never too late.
  MonotonicTime renew_at_{};
  Millis delay_;
  int reserve_rounds_ = 0;
  std::size_t names_tried_ = 0;  ///< Of reserve_.also, in releasing what may be there.
  bool reserve_in_doubt_ = false;
  bool contradicted_ = false;
  bool stream_ = false;
  std::optional<Met> met_;
  /// Kept until it is known to have been done; a completion without its body.
  std::optional<StoreCall> settling_;
  Answer answer_;             ///< For the client, once the settling is durable.
  Millis left_for_{1000};     ///< When to ask again about an attempt that goes on, or was left.
  std::string_view outcome_;  ///< Idempotency-Outcome of `answer_`; empty for problems.
};

}  // namespace idem
