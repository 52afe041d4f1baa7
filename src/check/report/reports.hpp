#pragma once

#include "check/verdict.hpp"

#include <cstddef>
#include <string>

/// The forms in which `idem check` hands out what it found. Each is a pure function; each case of
/// the report must have its text. What the API sent is treated as hostile: in no form it can begin
/// markup, steer a terminal or make a parser fail.
namespace idem::check {

// Of one message, on a page and in JSON. Answers to one order are small, readers compare them by
// eye, and a page must stay small enough to be sent by mail.
inline constexpr std::size_t page_message_bytes_max = 16UL * 1024;
inline constexpr std::size_t json_message_bytes_max = 64UL * 1024;
// Of one finding: more of a race show the same again.
inline constexpr std::size_t page_calls_max = 24;

/// For programs: one object {"target","profile","verdict":"pass|fail","seed","version",
/// "started_at","took_ms","requests","key_mark","cases_known","cases":[...]} in one line, with
/// "ended_early" where the run ended before its last case. A case is {"id","severity","title",
/// "source","result":"pass|fail|skip","detail","times","failures"}, and of one that failed in any
/// attempt also "reason", "money", "mend" and
/// "calls":[{"what","request","answer","failure","began_ms", "took_ms"}]. Messages keep their ends
/// of lines; bytes that are not text are shown as printable() says.
std::string json_report(const Report& report);

/// For CI servers: one suite, in which a case is a test of the class idem.check.SEVERITY.
std::string junit_report(const Report& report);

/// For code scanning: SARIF 2.1.0. All cases are rules, the failed ones are results, located in the
/// configuration file: code scanning accepts only files of the repository.
std::string sarif_report(const Report& report);

/// For people: one page without scripts, or anything that is loaded from elsewhere.
std::string html_report(const Report& report);

/// For a README: an SVG that says "idempotency" and "ietf: 10/42 pass", "2 findings",
/// "incomplete" or "not tested".
std::string badge_svg(const Report& report);

/// For a terminal: the findings, counts, skipped cases, the verdict, and how to repeat the run.
/// Lines of requests and answers are cut at `width` columns, sentences are wrapped at `width` or
/// 96, whichever is less; a width below 40 counts as 40. Without `colours` it has no control
/// character but LF.
std::string terminal_report(const Report& report, bool colours, int width);

}  // namespace idem::check
