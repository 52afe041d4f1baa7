#include "library/flow_attempt.hpp"
#include "library/flow_input.hpp"
#include "library/own_values.hpp"
#include "store/own_rows.hpp"

#include <idem/assert.hpp>
#include <idem/fingerprint.hpp>
#include <idem/store_wait.hpp>

#include <algorithm>

namespace idem {
namespace {

using library::FlowAttempt;
using library::FlowState;
using library::id_of;
using library::text_of;
using How = TransactionEnd::How;

bool are_sound(const std::vector<Phase>& phases, Millis lease) {
  if (phases.empty() || phases.size() > limits::phases_max) return false;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const std::string& name = phases[i].name;
    if (name.empty() || name == "started" || name.size() > limits::phase_name_bytes_max) {
      return false;
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (phases[k].name == name) return false;
    }
    if (!phases[i].work) return false;
    if (phases[i].call.send && phases[i].call.timeout * 2 > lease) return false;
  }
  return true;
}

}  // namespace

class PhasedGuard::Flows {
 public:
  Flows(Engine::Parts& parts, PhasedOptions options, std::vector<Phase> phases)
      : options_(std::move(options)),
        phases_(std::move(phases)),
        rules_(parts, guard_options(options_)) {
    IDEM_ASSERT(parts.store->transactions() != nullptr);
    IDEM_ASSERT(!options_.guard.operation.empty() && options_.attempts_max > 0);
    IDEM_ASSERT(are_sound(phases_, options_.guard.lease));
    if (options_.complete_interval > Millis{0}) {
      completer_ =
          std::make_unique<workers::Runner>(std::vector<workers::RunOnce>{[this] {
                                              return complete_due() == limits::completer_batch;
                                            }},
                                            options_.complete_interval);
    }
  }

  Response serve(const Request& request);
  std::size_t complete_due();

 private:
  static GuardOptions guard_options(const PhasedOptions& options) {
    GuardOptions guard = options.guard;
    guard.after_crash = LeasePolicy::resume;
    return guard;
  }

  /// What the phases see, now and after a crash.
  Request kept_of(const Request& request) const;
  Response go(const Request& request, const Request& kept, Reserve reserve);
  /// The reserve, and with it what there is to do, in one commit.
  TransactionEnd begin(const Reserve& reserve, const std::string& input,
                       std::optional<FlowState>& state);
  /// The same for an attempt that was granted before.
  std::optional<FlowState> begin(const Send& send, const std::string& input);
  bool resume(const RecordId& id, std::string_view input);
  void put_off(const RecordId& id, Millis delay);
  Transactions& transactions() const { return *rules_.parts().store->transactions(); }

  PhasedOptions options_;
  std::vector<Phase> phases_;
  Guard::Rules rules_;
  std::unique_ptr<workers::Runner> completer_{};
};

Request PhasedGuard::Flows::kept_of(const Request& request) const {
  Request kept{request.method, request.target, {}, request.body, request.scope};
  for (const Field& field : request.headers) {
    const bool is_kept = std::ranges::any_of(options_.keep_fields, [&](const std::string& name) {
      return equal_names(name, field.name);
    });
    if (is_kept) kept.headers.push_back(field);
  }
  return kept;
}

Response PhasedGuard::Flows::serve(const Request& request) {
  if (library::InWork::is_now()) return rules_.called_from_work();
  const Engine::Parts::Busy busy(rules_.parts());
  auto reserve = rules_.reserve_of(request);
  if (!reserve) return rules_.told(std::move(reserve.error()));
  return rules_.told(go(request, kept_of(request), std::move(*reserve)));
}

Response PhasedGuard::Flows::go(const Request& request, const Request& kept, Reserve reserve) {
  const std::string input = library::pack_input(kept);
  const auto serving = rules_.make_serving(request, reserve);
  ExchangeAction action = serving->start();  // Before it is asked: the lease is counted from here.
  std::optional<FlowState> state;
  TransactionEnd begun = begin(reserve, input, state);
  if (begun.how == How::committed || begun.how == How::not_run) {
    action = serving->on(StoreAnswered{StoreReply(std::move(*begun.reserved))});
  } else if (begun.how != How::in_doubt) {
    return rules_.store_unavailable(begun.why);
  }
  return rules_.drive(serving, std::move(action), [&](const Send& send) -> ExchangeEvent {
    FlowAttempt attempt(rules_, phases_, options_.attempts_max, kept, *serving, send);
    // Granted without it: who waited for another's attempt, or whose reserve was in doubt.
    if (!state) state = begin(send, input);
    if (!state) return attempt.leave("the work could not be begun");
    return attempt.run(std::move(*std::exchange(state, std::nullopt)));
  });
}

TransactionEnd PhasedGuard::Flows::begin(const Reserve& reserve, const std::string& input,
                                         std::optional<FlowState>& state) {
  InTransaction what;
  what.reserve = reserve;
  what.work = [&](Transaction& transaction, const RecordId& id,
                  const Attempt& attempt) -> std::optional<StoreCall> {
    state = library::open_flow(transaction, options_.guard.operation, input, options_.guard.lease,
                               attempt, library::notes_calls(phases_.front()));
    if (!state) return std::nullopt;
    return Advance{id, attempt, state->point};
  };
  TransactionEnd end = transactions().run(std::move(what));
  if (end.how != How::committed) state.reset();
  return end;
}

std::optional<FlowState> PhasedGuard::Flows::begin(const Send& send, const std::string& input) {
  std::optional<FlowState> state;
  InTransaction what;
  what.id = send.id;
  what.attempt = send.attempt;
  what.work = [&](Transaction& transaction, const RecordId& id,
                  const Attempt& attempt) -> std::optional<StoreCall> {
    state = library::open_flow(transaction, options_.guard.operation, input, options_.guard.lease,
                               attempt, library::notes_calls(phases_.front()));
    if (!state) return std::nullopt;
    return Advance{id, attempt, state->point};
  };
  const TransactionEnd end = transactions().run(std::move(what));
  // In doubt: whoever comes next opens it, and finds that nothing was sent where it was not opened.
  if (end.how != How::committed) state.reset();
  return state;
}

// ---- the completer ----

std::size_t PhasedGuard::Flows::complete_due() {
  const Engine::Parts::Busy busy(rules_.parts());
  const auto due = OwnRows::run(transactions(), OwnStatement::due_flows,
                                {options_.guard.operation, std::int64_t{limits::completer_batch}});
  if (!due) {
    rules_.parts().options.log(LogLevel::warning, "completer_failed", {{"why", due.error()}});
    return 0;
  }
  std::size_t gone_on = 0;
  for (const SqlRow& row : *due) {
    const auto id = id_of(text_of(row.at(0)));
    const auto* const input = std::get_if<SqlBytes>(&row.at(1));
    if (id && input != nullptr && resume(*id, input->bytes)) ++gone_on;
  }
  return gone_on;
}

void PhasedGuard::Flows::put_off(const RecordId& id, Millis delay) {
  (void)OwnRows::run(transactions(), OwnStatement::put_off_flow,
                     {to_hex(id.bytes), std::int64_t{delay.count()}});
}

// What there is to do says nothing about who may: the record does, and a reserve asks it (§5).
bool PhasedGuard::Flows::resume(const RecordId& id, std::string_view input) {
  Engine::Parts& parts = rules_.parts();
  const auto found = ask_and_wait(*parts.store, Find{id});
  if (!found) return false;
  const std::optional<Record>& record = *found;
  if (record && (record->state == State::completed || record->state == State::expired)) {
    (void)OwnRows::run(transactions(), OwnStatement::close_flow, {to_hex(id.bytes)});
    return false;
  }
  const auto kept = library::unpack_input(input);
  if (!record || record->state != State::in_progress || !kept) {
    // Unknown: evidence ends that. Released: its client may ask again.
    put_off(id, limits::flow_unknown_interval);
    return false;
  }
  Reserve reserve;
  reserve.id = id;
  reserve.scope = record->scope;
  reserve.operation = record->operation;
  reserve.fingerprints = {record->fingerprint};
  reserve.token = random_token();
  reserve.owner = parts.options.owner;
  reserve.lease = options_.guard.lease;
  reserve.lease_policy = LeasePolicy::resume;
  reserve.retention = record->retention;
  reserve.tombstone = record->tombstone;
  reserve.generation = parts.store->identity().generation;
  // So that nobody looks at it again while somebody is at it; who is, says so at each phase.
  put_off(id, options_.guard.lease / 3);
  parts.options.log(LogLevel::info, "completing",
                    {{"operation_ref", to_hex(id.bytes)}, {"phase", record->recovery_point}});
  go(*kept, *kept, std::move(reserve));
  return true;
}

PhasedGuard::PhasedGuard(Engine& engine, PhasedOptions options, std::vector<Phase> phases)
    : flows_(std::make_unique<Flows>(engine.parts(), std::move(options), std::move(phases))) {}

PhasedGuard::~PhasedGuard() = default;

Response PhasedGuard::serve(const Request& request) { return flows_->serve(request); }

std::size_t PhasedGuard::complete_due() { return flows_->complete_due(); }

}  // namespace idem
