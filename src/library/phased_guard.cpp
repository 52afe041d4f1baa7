#include "core/bytes/hex.hpp"
#include "core/record/lease_end.hpp"
#include "library/flow_attempt.hpp"
#include "library/flow_input.hpp"
#include "library/misuse.hpp"
#include "library/own_values.hpp"
#include "store/internal_sql.hpp"
#include "workers/failures.hpp"

#include <idem/fingerprint.hpp>
#include <idem/store_wait.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <mutex>

namespace idem {
namespace {

using library::FlowAttempt;
using library::FlowState;
using library::text_of;
using How = TransactionEnd::How;

std::string of_call(const ForeignCall& call, const GuardOptions& guard) {
  if (call.timeout <= Millis{0}) return "its call has no timeout: say how long it may take";
  if (call.timeout * 2 > guard.lease) {
    return "its call may take " + std::to_string(call.timeout.count()) +
           " ms, and the lease must cover that twice: set guard.lease to " +
           std::to_string(call.timeout.count() * 2) + " ms at least, or a shorter timeout";
  }
  // A key that is used again has the same derived keys: the other side must have forgotten them.
  if (call.repetition.deduplicates > guard.retention + guard.tombstone) {
    return "the other side knows its key for longer than this store does: set guard.retention and "
           "guard.tombstone so that together they cover repetition.deduplicates";
  }
  return {};
}

std::string of_phase(const Phase& phase, const GuardOptions& guard) {
  if (phase.name.empty()) return "it has no name: records remember phases by their names";
  if (phase.name == "started") return "\"started\" is the point before the first phase";
  if (phase.name.size() > limits::phase_name_bytes_max) {
    return "its name is longer than " + std::to_string(limits::phase_name_bytes_max) + " bytes";
  }
  if (!phase.work) return "it has no work: give it the function that writes its rows";
  return phase.call.send ? of_call(phase.call, guard) : std::string();
}

/// A sentence; empty: the guard can serve.
std::string what_is_wrong(const std::vector<Phase>& phases, const PhasedOptions& options) {
  if (options.guard.operation.empty()) {
    return "guard.operation is empty: name it, because a completer has no request for its name";
  }
  if (options.attempts_max <= 0) return "attempts_max is 0: say how many attempts there may be";
  if (phases.empty()) return "there are no phases: give one at least";
  if (phases.size() > limits::phases_max) {
    return "there are more than " + std::to_string(limits::phases_max) + " phases";
  }
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const std::string which = "phase " + std::to_string(i + 1) + " (\"" + phases[i].name + "\"): ";
    if (auto why = of_phase(phases[i], options.guard); !why.empty()) return which + why;
    for (std::size_t k = 0; k < i; ++k) {
      if (phases[k].name == phases[i].name) return which + "another phase has this name";
    }
  }
  return {};
}

}  // namespace

class PhasedGuard::Flows {
 public:
  Flows(Engine& engine, PhasedOptions options, std::vector<Phase> phases)
      : options_(std::move(options)),
        phases_(std::move(phases)),
        rules_("PhasedGuard", engine, guard_options(options_)) {
    if (const auto why = what_is_wrong(phases_, options_); !why.empty()) {
      library::misused("PhasedGuard of \"" + options_.guard.operation + "\": " + why);
    }
    (void)rules_.transactions_for("PhasedGuard");
    if (options_.complete_interval > Millis{0}) {
      life_->at_work.fetch_add(1);
      completer_ =
          std::make_unique<workers::Runner>(std::vector<workers::RunOnce>{[this] {
                                              return complete_due() >= limits::completer_batch;
                                            }},
                                            options_.complete_interval);
    }
  }

  ~Flows() {
    if (completer_) {
      completer_.reset();
      life_->at_work.fetch_sub(1);
    }
    rules_.detach();
  }
  Flows(const Flows&) = delete;
  Flows& operator=(const Flows&) = delete;

  Response serve(const Request& request);
  std::size_t complete_due();

 private:
  static GuardOptions guard_options(const PhasedOptions& options) {
    GuardOptions guard = options.guard;
    guard.after_crash = LeasePolicy::resume;
    return guard;
  }

  /// The part of a request that the phases see, now and after a crash.
  Request kept_of(const Request& request) const;
  /// `wait`: how long to wait for another attempt.
  Response go(const Request& request, const std::string& input, Reserve reserve, Millis wait);
  /// Commits the reserve together with the stored progress of the work.
  StoreResult begin(const Reserve& reserve, const std::string& input,
                    std::optional<FlowState>& state);
  std::size_t complete_due_of(const std::string& operation);
  /// Few log lines about a store that the completer cannot read. Null: it could.
  void note(const std::string* failure);
  /// Continues due work. False: it did not.
  bool resume(const RecordId& id, const SqlRow& due);
  Reserve reserve_of(const Record& record) const;
  void stop_unreadable(const Record& record);
  void put_off(const RecordId& id, Millis delay);
  Transactions& transactions() const { return *rules_.parts().store->transactions(); }

  PhasedOptions options_;
  std::vector<Phase> phases_;
  Guard::Rules rules_;
  std::shared_ptr<library::EngineLife> life_ = rules_.parts().life;
  std::mutex failures_mutex_;  ///< complete_due() is also called by threads of the service.
  workers::Failures failures_{{"completer_failed", "completer_recovered", "why"},
                              {"operation", options_.guard.operation}};
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
  if (auto refused = rules_.refused_here()) return std::move(*refused);
  const Engine::Parts::Busy busy(rules_.parts());
  auto reserve = rules_.reserve_of(request);
  if (!reserve) return std::move(reserve.error());
  return go(request, library::pack_input(kept_of(request)), std::move(*reserve),
            options_.guard.wait);
}

Response PhasedGuard::Flows::go(const Request& request, const std::string& input, Reserve reserve,
                                Millis wait) {
  const auto serving = rules_.make_serving(request, std::move(reserve), wait);
  std::optional<FlowState> state;
  return rules_.drive(
      serving, serving->start(),
      [&](const Send& send) -> ExchangeEvent {
        FlowAttempt attempt(rules_, phases_, options_.attempts_max, *serving, send);
        if (!state) return attempt.leave("the work could not be begun");
        return attempt.run(std::move(*std::exchange(state, std::nullopt)));
      },
      [&](const Reserve& asked) { return begin(asked, input, state); });
}

StoreResult PhasedGuard::Flows::begin(const Reserve& reserve, const std::string& input,
                                      std::optional<FlowState>& state) {
  state.reset();
  InTransaction what;
  what.reserve = reserve;
  what.work = [&](Transaction& transaction, const RecordId& id,
                  const Attempt& attempt) -> std::optional<StoreCall> {
    state = library::open_flow(transaction, options_.guard.operation, input, options_.guard.lease,
                               attempt, phases_.front());
    if (!state) return std::nullopt;
    // Of progress that cannot be used, the record keeps its recovery point.
    const bool is_usable = !state->is_torn && !state->is_unreadable;
    return Advance{id, attempt, is_usable ? state->point : transaction.recovery_point()};
  };
  TransactionEnd end = transactions().run(std::move(what));
  if (end.how == How::committed || end.how == How::not_run) {
    rules_.parts().store_answered();
    log_lease_end(rules_.parts().options.log, *end.reserved);
    return StoreReply(std::move(*end.reserved));
  }
  state.reset();
  rules_.parts().store_failed(end.why);
  const auto code =
      end.how == How::in_doubt ? StoreError::Code::in_doubt : StoreError::Code::unavailable;
  return std::unexpected(StoreError{code, std::move(end.why)});
}

// ---- the completer ----

std::size_t PhasedGuard::Flows::complete_due() {
  const Engine::Parts::Busy busy(rules_.parts());
  auto operations = rules_.former_operations();
  operations.insert(operations.begin(), options_.guard.operation);
  std::size_t continued = 0;
  for (const std::string& operation : operations) continued += complete_due_of(operation);
  return continued;
}

std::size_t PhasedGuard::Flows::complete_due_of(const std::string& operation) {
  const auto due = InternalSql::run(transactions(), InternalStatement::due_flows,
                                    {operation, std::int64_t{limits::completer_batch}});
  note(due ? nullptr : &due.error());
  if (!due) return 0;
  std::size_t continued = 0;
  for (const SqlRow& row : *due) {
    const auto id = parse_handle(text_of(row.at(0)));
    if (id && resume(*id, row)) ++continued;
  }
  return continued;
}

void PhasedGuard::Flows::note(const std::string* failure) {
  const LogSink& log = rules_.parts().options.log;
  const std::lock_guard lock(failures_mutex_);
  if (failure != nullptr) return failures_.failed(log, *failure);
  failures_.succeeded(log);
}

void PhasedGuard::Flows::put_off(const RecordId& id, Millis delay) {
  (void)InternalSql::run(transactions(), InternalStatement::postpone_flow,
                         {to_hex(id.bytes), std::int64_t{delay.count()}});
}

Reserve PhasedGuard::Flows::reserve_of(const Record& record) const {
  Reserve reserve;
  reserve.id = record.id;
  reserve.scope = record.scope;
  reserve.operation = record.operation;
  reserve.fingerprints = {record.fingerprint};
  reserve.token = random_token();
  reserve.owner = rules_.parts().options.owner;
  reserve.lease = options_.guard.lease;
  reserve.lease_policy = LeasePolicy::resume;
  reserve.retention = record.retention;
  reserve.tombstone = record.tombstone;
  reserve.generation = rules_.parts().store->identity().generation;
  return reserve;
}

// No attempt can continue it: a person has to look.
void PhasedGuard::Flows::stop_unreadable(const Record& record) {
  rules_.parts().options.log(LogLevel::error, "work_unreadable",
                             {{"operation_ref", to_hex(record.id.bytes)}});
  InTransaction what;
  what.reserve = reserve_of(record);
  what.work = [](Transaction&, const RecordId& id, const Attempt& attempt) {
    return std::optional<StoreCall>(MarkUnknown{id, attempt, "work_unreadable", {}, {}});
  };
  (void)transactions().run(std::move(what));
}

// The stored progress does not grant the right to execute: a reserve on the record does (§5).
bool PhasedGuard::Flows::resume(const RecordId& id, const SqlRow& due) {
  Engine::Parts& parts = rules_.parts();
  const auto* const input = std::get_if<SqlBytes>(&due.at(1));
  const std::string point = text_of(due.at(2));
  const auto found = ask_and_wait(*parts.store, Find{id});
  if (!found) return false;
  const std::optional<Record>& record = *found;
  if (record && (record->state == State::completed || record->state == State::expired)) {
    // The record was settled elsewhere. Drops only the row that was read: the key may be in use
    // again.
    (void)InternalSql::run(transactions(), InternalStatement::close_flow,
                           {to_hex(id.bytes), text_of(due.at(3))});
    return false;
  }
  // Work that was released before its first commit waits for its client's retry. After a commit the
  // work must not stay half done, and evidence has said that no call is open.
  const bool is_half_done = point != "started";
  const bool goes_on = record && (record->state == State::in_progress ||
                                  (record->state == State::failed_retryable && is_half_done));
  if (!goes_on) {
    put_off(id, limits::flow_unknown_interval);  // `unknown` waits for evidence.
    return false;
  }
  const auto kept = input != nullptr ? library::unpack_input(id, input->bytes) : std::nullopt;
  // Keeps other completers away while an attempt runs, which extends this at each phase.
  put_off(id, options_.guard.lease / 3);
  if (!kept) {
    stop_unreadable(*record);
    return false;
  }
  parts.options.log(LogLevel::info, "completing",
                    {{"operation_ref", to_hex(id.bytes)}, {"phase", point}});
  (void)go(*kept, library::pack_input(*kept), reserve_of(*record), Millis{0});
  return true;
}

PhasedGuard::PhasedGuard(Engine& engine, PhasedOptions options, std::vector<Phase> phases)
    : flows_(std::make_unique<Flows>(engine, std::move(options), std::move(phases))) {}

PhasedGuard::~PhasedGuard() = default;

Response PhasedGuard::serve(const Request& request) { return flows_->serve(request); }

std::size_t PhasedGuard::complete_due() { return flows_->complete_due(); }

}  // namespace idem
