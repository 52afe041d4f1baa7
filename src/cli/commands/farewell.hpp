#pragma once

#include "admin/audit/audit_trail.hpp"
#include "cli/log/process_log.hpp"
#include "gateway/background/search_index.hpp"
#include "gateway/shadow/shadow_room.hpp"

namespace idem::cli {

/// The audit says from now on which of its lines the log loses, as `process` ("gateway
/// 127.0.0.1:8080"). All live until finish_log().
void tell_of_lost_lines(ProcessLog& log, admin::AuditTrail& audit, const std::string& process);

/// Before the end of the process, while the audit's loop runs: writes what waits in the log, and
/// waits until the audit says what of it was lost. Each takes limits::log_flush_max at most.
void finish_log(ProcessLog& log, const admin::AuditTrail& audit);

/// Waits for the ends of observed requests, and for values on their way to a search, for
/// limits::shadow_drain_max and limits::search_farewell at most. A lease frees what is left of the
/// one, and records of the other are found by key and ref alone.
void wait_for_the_rest(const gateway::ShadowRoom& shadow, const gateway::SearchIndex& search);

}  // namespace idem::cli
