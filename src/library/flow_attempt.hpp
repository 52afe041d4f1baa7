#pragma once

#include "core/evidence/repetition.hpp"
#include "library/guard_rules.hpp"

#include <idem/phases.hpp>

#include <optional>
#include <span>

namespace idem::library {

/// The stored progress of a request's work at an attempt's start (schema: flows).
struct FlowState {
  std::string point{};  ///< The last committed phase.
  std::string next{};   ///< The phase after it, by the name under which its calls were made.
  Request input{};      ///< The first request: every attempt works on it.
  int attempts = 1;
  /// Since then, at the latest, no call of an earlier attempt is in flight; none: no call is open.
  std::optional<MonotonicTime> no_call_in_flight_since{};
  MonotonicTime point_since{};  ///< When that phase committed, at the earliest.
  /// The record has another recovery point: a part of the progress was lost.
  bool is_torn = false;
  /// The stored request is damaged, or of another version: `input` is empty.
  bool is_unreadable = false;
};

/// Reads the progress in the transaction that reserves; stores `input` if the work is new. None:
/// the transaction has failed.
std::optional<FlowState> open_flow(Transaction& transaction, const std::string& operation,
                                   const std::string& input, Millis lease, const Attempt& attempt,
                                   const Phase& first);

/// True if after a crash it is known whether the phase's call may have been made: the phase notes
/// its calls, or has none.
bool notes_calls(const Phase& phase);

/// One attempt at a request's phases, on one thread.
class FlowAttempt {
 public:
  FlowAttempt(const Guard::Rules& rules, std::span<const Phase> phases, int attempts_max,
              Serving& serving, const Send& send)
      : rules_(rules),
        phases_(phases),
        attempts_max_(attempts_max),
        serving_(serving),
        id_(send.id),
        attempt_(send.attempt) {}

  /// Continues from `state`, to the end or as far as possible.
  ExchangeEvent run(FlowState state);

  /// Ends the attempt without a result; another one goes on.
  ExchangeEvent leave(std::string_view why);

 private:
  /// The attempt's end; none: the phase goes on.
  using Stop = std::optional<ExchangeEvent>;

  /// The index of the phase after `state_.point`; none: no phase has that name.
  std::optional<std::size_t> next_phase() const;
  Stop call(const Phase& phase, CallAnswered& called);
  // One try each; none: try again.
  std::optional<Stop> look_up(const Phase& phase, const PhaseCall& call, CallAnswered& called);
  std::optional<Stop> send(const Phase& phase, const PhaseCall& call, CallAnswered& called);
  std::optional<Stop> after_call(CallEnd end, const Phase& phase, CallAnswered& called);
  /// Pauses before the next try of a transient failure. False: no further try, or too long a pause.
  bool pause(Millis at_least);

  Stop commit(std::size_t index, const CallAnswered& called);
  /// What a try of a phase's transaction found in the database.
  struct Found {
    bool was_passed = false;  ///< The phase had committed before.
    bool is_lost = false;     ///< The progress is gone, or at another point.
    std::string thrown{};     ///< The phase's exception, and the failed statement before it.
  };
  TransactionEnd try_commit(std::size_t index, const CallAnswered& called, Found& found);
  Stop failed(std::size_t index, bool was_in_doubt);

  /// Makes the record unknown, for evidence to settle.
  ExchangeEvent give_up(std::string code, std::string reference = {});
  /// Before leave(): stores that no call is open, and that another attempt may begin in `retry_in`.
  void rest(Millis retry_in);
  bool covers(Millis timeout) const;
  /// The name of the next phase; empty: there is none.
  std::string name_after(std::size_t index) const;
  /// notes_calls() of the next phase; true if there is none.
  bool is_noted_after(std::size_t index) const;
  CallHistory history() const;
  Transactions& transactions() const { return *rules_.parts().store->transactions(); }
  void log(LogLevel level, std::string_view event, std::string_view phase, std::string why) const;

  const Guard::Rules& rules_;
  std::span<const Phase> phases_;
  int attempts_max_;
  Serving& serving_;
  RecordId id_;
  Attempt attempt_;
  FlowState state_{};
  int tries_ = 0;  ///< Of the phase's call or commit.
  std::optional<Response> answer_{};
};

}  // namespace idem::library
