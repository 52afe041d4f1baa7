#include "core/record/lease_end.hpp"

#include <string>
#include <variant>

namespace idem {
namespace {

struct StateNow {
  State operator()(const Execute&) const noexcept { return State::in_progress; }
  State operator()(const Unknown&) const noexcept { return State::unknown; }
  State operator()(const Pending&) const noexcept { return State::pending; }
};

}  // namespace

void log_lease_end(const LogSink& log, const RecordId& id, State from, std::optional<State> to) {
  if (!log) return;
  log(to == State::unknown ? LogLevel::warning : LogLevel::info, "lease_expired",
      {{"operation_ref", to_hex(id.bytes)},
       {"from", std::string(name_of(from))},
       {"to", std::string(to ? name_of(*to) : "gone")}});
}

void log_lease_end(const LogSink& log, const ReserveOutcome& outcome) {
  std::visit(
      [&log](const auto& one) {
        if constexpr (requires { one.ended_lease; }) {
          if (one.ended_lease) log_lease_end(log, one.id, State::in_progress, StateNow()(one));
        }
      },
      outcome);
}

void log_lease_end(const LogSink& log, const StoreResult& result) {
  const auto* const outcome = result ? std::get_if<ReserveOutcome>(&*result) : nullptr;
  if (outcome != nullptr) log_lease_end(log, *outcome);
}

}  // namespace idem
