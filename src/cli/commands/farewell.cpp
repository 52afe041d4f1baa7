#include "cli/commands/farewell.hpp"

#include <idem/limits.hpp>
#include <idem/search_limits.hpp>
#include <idem/worker_limits.hpp>

#include <thread>

namespace idem::cli {

void tell_of_lost_lines(ProcessLog& log, admin::AuditTrail& audit, const std::string& process) {
  log.when_audit_line_is_lost(
      [&audit, process](std::uint64_t seq) { audit.note_lost_in_log(seq, process); });
}

void finish_log(ProcessLog& log, const admin::AuditTrail& audit) {
  log.flush(limits::log_flush_max);
  log.when_audit_line_is_lost({});
  const auto end = MonotonicClock::now() + limits::log_flush_max;
  while (audit.losses_to_note() > 0 && MonotonicClock::now() < end) {
    std::this_thread::sleep_for(Millis(5));
  }
}

void wait_for_the_rest(const gateway::ShadowRoom& shadow, const gateway::SearchIndex& search) {
  const auto began = MonotonicClock::now();
  const auto works = [&] {
    const auto took = MonotonicClock::now() - began;
    return (shadow.under_way() > 0 && took < limits::shadow_drain_max) ||
           (!search.drained() && took < limits::search_farewell);
  };
  while (works()) std::this_thread::sleep_for(Millis(5));
}

}  // namespace idem::cli
