#include "core/evidence/repetition.hpp"
#include "core/exchange/backoff.hpp"
#include "library/engine.hpp"
#include "library/foreign_calls.hpp"
#include "library/misuse.hpp"
#include "library/relay_queue.hpp"
#include "store/known_kinds.hpp"
#include "workers/failures.hpp"

#include <idem/relay.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <random>

namespace idem {

using library::ClaimedMessage;
using library::Note;
using library::Noted;

namespace {

/// A sentence; empty: the destination is valid.
std::string what_is_wrong(const Destination& destination, const RelayOptions& options) {
  if (destination.name.empty()) return "it has no name: messages name their destination";
  if (!destination.send) return "its send is null: give it the function that sends a message";
  if (destination.attempts_max <= 0) return "attempts_max is 0: say how many there may be";
  if (destination.timeout <= Millis{0}) return "timeout is 0: say how long a delivery may take";
  if (options.batch == 0) return "batch is 0: say how many messages are claimed at once";
  if (options.lease <= destination.timeout + library::call_margin(options.lease)) {
    return "the lease does not cover one delivery: set RelayOptions::lease beyond its timeout of " +
           std::to_string(destination.timeout.count()) + " ms, or a shorter timeout";
  }
  return {};
}

}  // namespace

/// The messages of one destination. Turns run one at a time.
class Relay::Line {
 public:
  Line(Transactions& transactions, LogSink log, Destination destination, RelayOptions options)
      : log_(std::move(log)),
        destination_(std::move(destination)),
        options_(options),
        queue_(transactions, destination_.name) {
    if (const auto why = what_is_wrong(destination_, options_); !why.empty()) {
      library::misused("Relay to \"" + destination_.name + "\": " + why);
    }
    if (options_.interval <= Millis{0}) return;
    runner_ = std::make_unique<workers::Runner>([this] {
      const Turn turn = this->turn();
      return turn.claimed == options_.batch ? Millis(0) : turn.rest;
    });
  }

  struct Turn {
    std::size_t claimed = 0;
    Millis rest{};  ///< Before the next turn, unless there is more to do.
  };
  Turn turn() {
    const std::lock_guard lock(mutex_);
    const std::size_t claimed = claim_and_deliver();
    return {claimed, failures_.rest(options_.interval)};
  }

 private:
  std::size_t claim_and_deliver();
  void deliver(const ClaimedMessage& claimed);
  void send(const ClaimedMessage& claimed, const Delivery& delivery);
  void fail(const ClaimedMessage& claimed, Note note, Millis retry_in);
  void note(const ClaimedMessage& claimed, const Note& note);
  void reap_if_due();

  bool notes_sending() const { return library::needs_notes(destination_.repetition); }
  Next next_of(const ClaimedMessage& claimed) const;
  Delivery delivery_of(const ClaimedMessage& claimed) const;
  /// The rest of the claim covers one delivery.
  bool covers() const {
    const Millis margin = library::call_margin(options_.lease);
    return MonotonicClock::now() + destination_.timeout + margin <= claimed_until_;
  }
  void log(LogLevel level, std::string_view event, const ClaimedMessage& claimed,
           const std::string& why) const;

  LogSink log_;
  Destination destination_;
  RelayOptions options_;
  std::mutex mutex_;  ///< Held during a turn, of the runner or of deliver_due().
  library::RelayQueue queue_;
  Breaker breaker_{{.failures = limits::breaker_failures,
                    .pause_first = limits::breaker_pause_first,
                    .pause_max = limits::breaker_pause_max}};
  std::minstd_rand dice_{std::random_device{}()};
  MonotonicTime claimed_until_{};  ///< The batch's claim ends; counted from before the claim.
  MonotonicTime reap_at_{};
  workers::Failures failures_{{"relay_failed", "relay_recovered", "why"},
                              {"destination", destination_.name}};
  std::unique_ptr<workers::Runner> runner_{};
};

std::size_t Relay::Line::claim_and_deliver() {
  reap_if_due();
  const auto now = MonotonicClock::now();
  if (breaker_.is_open(now)) return 0;
  claimed_until_ = now + options_.lease;
  const auto claimed = queue_.claim(breaker_.is_on_trial() ? 1 : options_.batch, options_.lease,
                                    destination_.repetition.deduplicates, notes_sending());
  if (!claimed) {
    failures_.failed(log_, claimed.error());
    return 0;
  }
  failures_.succeeded(log_);
  for (const ClaimedMessage& one : *claimed) deliver(one);
  return claimed->size();
}

Next Relay::Line::next_of(const ClaimedMessage& claimed) const {
  const auto now = MonotonicClock::now();
  const auto& repetition = destination_.repetition;
  CallHistory history;
  if (claimed.no_call_in_flight_since) history.quiet_for = now - *claimed.no_call_in_flight_since;
  history.first_ago = repetition.deduplicates - (claimed.repeat_until - now);
  return next_step(history, library::declared_by(repetition, destination_.timeout));
}

Delivery Relay::Line::delivery_of(const ClaimedMessage& claimed) const {
  return {.message = claimed.message,
          .id = claimed.id,
          .key = derived_key(claimed.operation, "outbox", claimed.id),
          .operation = claimed.operation,
          .created_at = claimed.created_at,
          .attempt = claimed.attempt,
          .timeout = destination_.timeout};
}

void Relay::Line::deliver(const ClaimedMessage& claimed) {
  const bool in_doubt = claimed.no_call_in_flight_since.has_value();
  const auto now = MonotonicClock::now();
  if (breaker_.is_open(now)) {
    return note(claimed, {.how = Noted::given_back,
                          .delay = breaker_.open_until() - now,
                          .may_have_arrived = in_doubt});
  }
  if (claimed.attempt > destination_.attempts_max) {
    return note(
        claimed,
        {.how = Noted::dead, .why = "all attempts were used up", .may_have_arrived = in_doubt});
  }
  const Delivery delivery = delivery_of(claimed);
  const Next next = next_of(claimed);
  switch (next.step) {
    case NextStep::send:
      return send(claimed, delivery);
    case NextStep::wait:
      return note(claimed,
                  {.how = Noted::given_back, .delay = next.wait, .may_have_arrived = true});
    case NextStep::give_up:
      return note(claimed,
                  {.how = Noted::dead,
                   .why = "it may have arrived, and its destination no longer recognises a repeat",
                   .may_have_arrived = true});
    case NextStep::look_up:
      break;
  }
  const LookedUp seen = library::look_up(destination_.repetition, delivery);
  if (const auto* const answered = std::get_if<CallAnswered>(&seen)) {
    return note(claimed, {.how = Noted::delivered, .reference = answered->reference});
  }
  if (std::holds_alternative<NothingThere>(seen)) return send(claimed, delivery);
  fail(claimed,
       {.how = Noted::unseen, .why = std::get<CannotTell>(seen).why, .may_have_arrived = true}, {});
}

void Relay::Line::send(const ClaimedMessage& claimed, const Delivery& delivery) {
  const bool in_doubt = claimed.no_call_in_flight_since.has_value();
  if (!covers()) {
    return note(claimed, {.how = Noted::given_back, .may_have_arrived = in_doubt});
  }
  if (notes_sending()) {
    const auto noted = queue_.note_sending(claimed);
    if (!noted || !*noted) {
      // Noted or not, it was not sent.
      log(LogLevel::warning, "delivery_not_begun", claimed, noted ? "" : noted.error());
      return note(claimed, {.how = Noted::given_back, .may_have_arrived = in_doubt});
    }
    if (!covers()) return note(claimed, {.how = Noted::given_back, .may_have_arrived = in_doubt});
  }
  const CallEnd end = library::send_once(destination_.send, delivery, "the delivery");
  if (const auto* const answered = std::get_if<CallAnswered>(&end)) {
    breaker_.succeeded();
    return note(claimed, {.how = Noted::delivered, .reference = answered->reference});
  }
  if (const auto* const not_done = std::get_if<CallNotDone>(&end)) {
    // A final refusal is about this message, not about the destination.
    if (!not_done->is_final) breaker_.failed(MonotonicClock::now());
    return fail(claimed,
                {.how = not_done->is_final ? Noted::dead : Noted::put_off,
                 .why = not_done->why,
                 .may_have_arrived = in_doubt},
                not_done->retry_in);
  }
  const auto& ambiguous = std::get<CallAmbiguous>(end);
  breaker_.failed(MonotonicClock::now());
  ClaimedMessage after = claimed;
  after.no_call_in_flight_since = MonotonicClock::now();
  const bool is_over = next_of(after).step == NextStep::give_up;
  fail(claimed,
       {.how = is_over ? Noted::dead : Noted::put_off,
        .reference = ambiguous.reference,
        .why = is_over ? ambiguous.why + "; it may have arrived" : ambiguous.why,
        .may_have_arrived = true},
       ambiguous.retry_in);
}

void Relay::Line::fail(const ClaimedMessage& claimed, Note what, Millis retry_in) {
  if (claimed.attempt >= destination_.attempts_max) what.how = Noted::dead;
  const double dice = std::uniform_real_distribution<double>(0, 1)(dice_);
  const Millis pause =
      backoff(claimed.attempt, destination_.retry_first, destination_.retry_max, dice);
  what.delay = std::max(pause, std::min(retry_in, Millis(limits::retry_after_max)));
  note(claimed, what);
}

void Relay::Line::note(const ClaimedMessage& claimed, const Note& what) {
  auto noted = queue_.note(claimed, what);
  for (int tries = 1; !noted && tries < limits::call_tries_max; ++tries) {
    std::this_thread::sleep_for(limits::call_retry_first);
    noted = queue_.note(claimed, what);
  }
  if (!noted) {
    // The message counts as in flight until its claim ends, and as in doubt from then on.
    log(LogLevel::warning, "relay_failed", claimed, noted.error());
  } else if (!*noted) {
    log(LogLevel::warning, "delivery_superseded", claimed, what.why);
  } else if (what.how == Noted::dead) {
    log(LogLevel::error, "message_dead", claimed, what.why);
  } else if (what.how == Noted::put_off || what.how == Noted::unseen) {
    log(LogLevel::warning, "delivery_failed", claimed, what.why);
  }
}

void Relay::Line::reap_if_due() {
  const auto now = MonotonicClock::now();
  if (now < reap_at_) return;
  const auto reaped = queue_.reap(limits::sweep_batch, options_.retention);
  const bool is_more = reaped && *reaped == limits::sweep_batch;
  if (!is_more) reap_at_ = now + Millis(limits::message_reap_interval);
}

void Relay::Line::log(LogLevel level, std::string_view event, const ClaimedMessage& claimed,
                      const std::string& why) const {
  log_(level, event,
       {{"destination", destination_.name},
        {"message", claimed.id},
        {"operation_ref", to_hex(claimed.operation.bytes)},
        {"attempt", claimed.attempt},
        {"why", why}});
}

Relay::Relay(Engine& engine, std::vector<Destination> destinations, RelayOptions options)
    : Relay(*library::parts_of("Relay", engine).store, engine.parts().options.log,
            std::move(destinations), options) {
  const auto life = engine.parts().life;
  life->at_work.fetch_add(1);
  at_work_ = std::shared_ptr<void>(nullptr, [life](void*) { life->at_work.fetch_sub(1); });
}

Relay::Relay(Store& store, LogSink log, std::vector<Destination> destinations,
             RelayOptions options) {
  Transactions* const transactions = store.transactions();
  if (transactions == nullptr) {
    library::misused("Relay: this store has no outbox; open a " +
                     listed(&KnownKind::has_transactions, scheme_of, " or ") + " store");
  }
  log = library::log_or_stderr(std::move(log));
  for (std::size_t i = 0; i < destinations.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (destinations[k].name == destinations[i].name) {
        library::misused("Relay: two destinations are called \"" + destinations[i].name + "\"");
      }
    }
  }
  for (Destination& destination : destinations) {
    lines_.push_back(std::make_unique<Line>(*transactions, log, std::move(destination), options));
  }
}

Relay::~Relay() = default;

std::size_t Relay::deliver_due() {
  std::size_t claimed = 0;
  for (const auto& line : lines_) claimed += line->turn().claimed;
  return claimed;
}

}  // namespace idem
