#pragma once

#include "core/evidence/repetition.hpp"
#include "library/guard_rules.hpp"

#include <idem/phases.hpp>

#include <optional>
#include <span>

namespace idem::library {

/// What is known of a request's work when an attempt begins with it (schema: flows).
struct FlowState {
  std::string point{};  ///< The last phase that committed.
  std::string next{};   ///< The phase behind it, by the name that its calls were made under.
  Request input{};      ///< What was asked first: every attempt works on this.
  int attempts = 1;
  /// From when on no call of an earlier attempt can be under way, at the latest; none: nothing is
  /// open.
  std::optional<MonotonicTime> no_call_in_flight_since{};
  MonotonicTime point_since{};  ///< When that phase committed, at the earliest.
  /// The record says another point: a part of what is known was lost.
  bool is_torn = false;
};

/// Within the transaction that reserves; `input` is kept where the work is new. None: the
/// transaction has failed, or what is kept cannot be read.
std::optional<FlowState> open_flow(Transaction& transaction, const std::string& operation,
                                   const std::string& input, Millis lease, const Attempt& attempt,
                                   const Phase& first);

/// Whether a phase's calls are noted before they are made, or there are none: then it is known of a
/// crash whether one may have been made. That costs a commit, so only where nothing else helps.
bool notes_calls(const Phase& phase);

/// One attempt at a request's phases, on the thread that has it.
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

  /// From where `state` says, to the end or as far as it comes.
  ExchangeEvent run(FlowState state);

  /// The attempt ends without a word, and another goes on.
  ExchangeEvent leave(std::string_view why);

 private:
  /// How a call or a commit went; none: on with the phase.
  using Stop = std::optional<ExchangeEvent>;

  /// The index of the phase after `state_.point`; none: there is no such point.
  std::optional<std::size_t> next_phase() const;
  Stop call(const Phase& phase, CallAnswered& called);
  /// One try of it; null: once more.
  std::optional<Stop> look_up(const Phase& phase, const PhaseCall& call, CallAnswered& called);
  std::optional<Stop> send(const Phase& phase, const PhaseCall& call, CallAnswered& called);
  std::optional<Stop> after(CallEnd end, const Phase& phase, CallAnswered& called);
  /// Waits a little for what passes by itself; false: often enough, or it takes too long.
  bool pause(Millis at_least);

  Stop commit(std::size_t index, const CallAnswered& called);
  /// What a try at a phase's transaction found, besides how it ended.
  struct Found {
    bool was_passed = false;  ///< It had committed before.
    bool is_lost = false;     ///< There is nothing to pass: somebody took it away.
  };
  TransactionEnd try_commit(std::size_t index, const CallAnswered& called, Found& found);
  Stop failed(std::size_t index, bool was_in_doubt);

  /// Nobody knows: the record becomes unknown, for evidence to settle.
  ExchangeEvent give_up(std::string code, std::string reference = {});
  /// Before it leaves: a later attempt is told that nothing is open, and may begin in `retry_in`.
  void rest(Millis retry_in);
  bool covers(Millis timeout) const;
  /// The name of the phase behind this one; empty: there is none.
  std::string name_behind(std::size_t index) const;
  bool is_noted_behind(std::size_t index) const;
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
  int tries_ = 0;  ///< Of the phase's call, or commit.
  std::optional<Response> answer_{};
};

}  // namespace idem::library
