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
/// performs no I/O, reads no clock and starts no timer; its driver (gateway, library, tests)
/// carries out the action that it returned, and reports the result as the next event.
namespace idem {

struct ExchangeSettings {
  Millis dispatch_timeout{};  ///< From the first byte to the last of the answer.
  Millis renew_interval{};    ///< A third of the lease.
  /// Stored although withheld by default. Not read after settling has begun: the settling may
  /// outlive them.
  std::span<const std::string> replay_fields{};
  AnswerPolicy answers{};
  bool store_body = true;  ///< False: an answer is recorded without its body (T37).
  /// How long a duplicate waits for the attempt that it met, from start(); 0: not at all.
  Millis wait{};
  /// The applied part of `Prefer: wait`: Preference-Applied in the answer to a client that waited.
  std::optional<std::chrono::seconds> wait_applied{};
  /// A client that would wait for stored work gets 202 with the status resource (§7, "async").
  bool respond_async = false;
  /// `Prefer: respond-async` asked for that: Preference-Applied in that answer.
  bool async_applied = false;
  /// When a client should look again at stored work.
  Millis look_again{1000};
  /// How long a claimed request rests at least after a release.
  Millis rest{};
  /// When the reconciler first asks about an unknown outcome; none: it never asks.
  std::optional<Millis> reconcile_in{};
  /// Stored beside an answer of this attempt (answers.hpp, trace_field); empty: nothing.
  std::string trace{};
  /// The answer to QuotaExceeded, if set: the reserve allows no new record.
  std::optional<WireAnswer> no_record{};
  Millis settle_retry_first{50};
  Millis settle_retry_max{2000};
};

// ---- what the driver reports ----

/// The store has replied.
struct StoreAnswered {
  StoreResult result;
};
/// The delay of an AskLater is over.
struct RetryDue {};
/// A connection to the upstream is open; no byte was sent on it.
struct UpstreamReady {};
/// No connection, or the kernel accepted zero bytes of the request: provably not executed.
struct UpstreamNotReached {
  std::string detail;
};
/// A complete final answer (end-to-end fields only, `Idem-*` already taken out).
struct UpstreamAnswered {
  WireAnswer answer;
  bool while_sending = false;
  std::optional<DeclaredOutcome> declared;
  std::string reference;
  bool answers_rpc = false;  ///< See rpc_field.
};
/// A final head whose body is above the storing limit; the rest is still in the connection.
struct UpstreamOversize {
  UpstreamAnswered head;  ///< `answer.body` is not used.
};
/// At least one byte was accepted and no complete answer came.
struct UpstreamLost {
  enum class How : std::uint8_t { timeout, closed, malformed, cut, unframed };
  How how = How::closed;
  std::optional<int> status;  ///< Of a head that came before the body was cut.
};
/// The work committed its completion together with its rows (§17): nothing is left to settle.
struct WorkCommitted {
  WireAnswer answer;
  OwnerReply reply;
};
/// The work ended with this answer, whatever its status. Without `keeps_body` only this caller gets
/// the body; the record says only that the work ran.
struct WorkAnswered {
  WireAnswer answer;
  bool keeps_body = true;
};
/// The work does not know whether it ran.
struct WorkUnknown {
  std::string error_code;
  std::string reference;
};
/// This attempt ends without a result: the record stays as it is until the lease ends, and another
/// attempt continues (§16). The client's answer follows from the record.
struct WorkLeft {};
/// The client must get an answer now; the attempt must still be settled.
struct ClientDeadline {};

/// After WaitFor: the record as read after a change, or the error; nullptr if it is gone. Several
/// requests may share one read.
struct Woken {
  std::expected<std::shared_ptr<const Record>, StoreError> record;
};
/// After WaitFor: the time is over, or no client may wait now.
struct WaitOver {};

using ExchangeEvent =
    std::variant<StoreAnswered, RetryDue, UpstreamReady, UpstreamNotReached, UpstreamAnswered,
                 UpstreamOversize, UpstreamLost, WorkAnswered, WorkCommitted, WorkUnknown, WorkLeft,
                 ClientDeadline, Woken, WaitOver>;

// ---- what the driver must do ----

struct Ask {
  StoreCall call;
};
struct AskLater {
  Millis delay;  ///< Then report RetryDue.
};
/// Get a connection; report UpstreamReady or UpstreamNotReached.
struct Connect {};
/// Send the request now, once, and report how it ended. Read the clock once more directly before
/// the first byte: after `not_after` send nothing, and report UpstreamNotReached.
struct Send {
  Attempt attempt;
  RecordId id;
  MonotonicTime not_after;
};
/// The attempt of another request runs, and this request waits for that attempt alone (§7). Watch
/// the record, then read it: it may have changed since. Report Woken at every change, WaitOver at
/// `until`.
struct WaitFor {
  RecordId id;
  std::optional<Fence> fence{};
  MonotonicTime until;
};
/// Answer the client. If owes_settlement(), continue with RetryDue until Done.
struct AnswerClient {
  WireAnswer answer;
};
/// Oversize: the settling is durable; send this head, then stream the rest of the body.
struct StreamThrough {
  WireAnswer head;
};
struct Done {};

using ExchangeAction =
    std::variant<Ask, AskLater, Connect, Send, WaitFor, AnswerClient, StreamThrough, Done>;

class Exchange {
 public:
  Exchange(const ExchangeSettings& settings, Reserve reserve);
  /// A request to be stored, for a dispatcher to run (§3).
  Exchange(const ExchangeSettings& settings, Accept accept);
  /// An attempt that was claimed, undispatched, for `lease`. No client waits for its answer.
  Exchange(const ExchangeSettings& settings, const Claimed& claimed, Millis lease);

  /// The first action. Read `now` before carrying it out; for a claimed attempt, before asking for
  /// the claim.
  ExchangeAction start(MonotonicTime now);
  ExchangeAction on(ExchangeEvent event, MonotonicTime now);

  /// The renewal to ask for, if one is due and the attempt runs. Its reply goes to renewed().
  std::optional<Renew> heartbeat(MonotonicTime now);
  void renewed(const std::expected<OwnerReply, StoreError>& result, MonotonicTime asked_at);

  /// Until then no other attempt may execute; meaningful while the attempt runs.
  MonotonicTime lease_end() const noexcept { return lease_end_; }

  /// True after an AnswerClient that left an attempt unsettled (§4).
  bool owes_settlement() const noexcept { return phase_ == Phase::owing; }
  const RecordId& id() const noexcept { return reserve_.id; }
  /// True once this attempt is completed with an answer that an event contradicts.
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
  /// The attempt of another request that this one met.
  struct Met {
    std::optional<Fence> fence{};
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
  ExchangeAction settle(StoreCall call, WireAnswer answer);
  StoreCall settlement() const;
  ExchangeAction release_unsent(std::string error_code, std::string detail, MonotonicTime now);
  StoreCall asking() const;
  Millis rest_before_next(const WireAnswer& answer) const;
  bool goes_on() const noexcept;
  ExchangeAction retry_later();
  ExchangeAction finish(WireAnswer answer);
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
  ExchangeAction finish_waiting(WireAnswer answer);
  Millis until(StoreTime moment, MonotonicTime now) const;
  WireAnswer outcome_unknown(int status, std::string detail,
                             std::optional<Millis> reconcile_in = {}) const;

  ExchangeSettings settings_;
  Reserve reserve_;
  std::optional<std::string> to_store_;  ///< Of an Accept.
  bool claimed_ = false;
  bool in_background_ = false;  ///< Waits for a stored request, in whichever attempt it runs.
  Phase phase_ = Phase::reserving;
  Attempt attempt_;
  MonotonicTime started_at_{};
  MonotonicTime lease_end_{};  ///< Counted from before the reserve was asked for: never too late.
  MonotonicTime renew_at_{};
  Millis delay_;
  int reserve_rounds_ = 0;
  std::size_t names_tried_ = 0;  ///< Of reserve_.also, to release a reserve in doubt.
  bool reserve_in_doubt_ = false;
  bool contradicted_ = false;
  bool stream_ = false;
  std::optional<Met> met_;
  /// Kept until the store confirms it; a completion without its body.
  std::optional<StoreCall> settling_;
  WireAnswer answer_;         ///< For the client, once the settling is durable.
  Millis left_for_{1000};     ///< When to ask again about an attempt that goes on, or was left.
  std::string_view outcome_;  ///< Idempotency-Outcome of `answer_`; empty for problems.
};

}  // namespace idem
