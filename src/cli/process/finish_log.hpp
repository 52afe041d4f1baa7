#pragma once

#include "admin/audit/audit_trail.hpp"
#include "cli/process/process_log.hpp"

namespace idem::cli {

/// The audit says from now on which of its lines the log loses, as `process` ("gateway
/// 127.0.0.1:8080"). All live until finish_log().
void tell_of_lost_lines(ProcessLog& log, admin::AuditTrail& audit, const std::string& process);

/// Before the end of the process, while the audit's loop runs: writes what waits in the log, and
/// waits until the audit says what of it was lost. Each takes limits::log_flush_max at most.
void finish_log(ProcessLog& log, const admin::AuditTrail& audit);

}  // namespace idem::cli
