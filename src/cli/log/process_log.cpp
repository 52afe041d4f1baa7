#include "cli/log/process_log.hpp"

#include "admin/audit/audit_trail.hpp"
#include "cli/terminal/messages.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/bytes/hex.hpp"
#include "core/bytes/json_string.hpp"
#include "core/bytes/last_words.hpp"
#include "core/exchange/problem.hpp"

#include <idem/worker_limits.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <utility>

namespace idem::cli {
namespace {

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "error";
}

std::string now_text() {
  const auto now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03d}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     (now - seconds).count());
}

bool is_visible(char c) noexcept { return c > ' ' && c < 0x7F; }

/// Bytes outside of visible ASCII are written as numbers: terminals also obey other control
/// characters, and some characters change the order of the text.
void append_text_value(std::string& line, std::string_view value) {
  const bool plain = !value.empty() && std::ranges::all_of(value, [](char c) {
    return is_visible(c) && c != '"' && c != '\\' && c != '=';
  });
  if (plain) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    if (!is_visible(c) && c != ' ') {
      line += "\\x" + hex_of({&c, 1});
      continue;
    }
    if (c == '"' || c == '\\') line += '\\';
    line += c;
  }
  line += '"';
}

Tone tone_of(LogLevel level) {
  if (level == LogLevel::info) return Tone::plain;
  return level == LogLevel::warning ? Tone::warning : Tone::bad;
}

std::string text_line(LogLevel level, std::string_view event,
                      std::initializer_list<LogField> fields, bool colours) {
  std::string line = now_text();
  line += ' ';
  line += in_tone(std::string(name_of(level)), tone_of(level), colours);
  line += ' ';
  line += event;
  for (const auto& field : fields) {
    line += ' ';
    line += field.name;
    line += '=';
    append_text_value(line, field.value);
  }
  return line;
}

std::string json_line(LogLevel level, std::string_view event,
                      std::initializer_list<LogField> fields) {
  std::string line = "{\"time\":\"" + now_text() + "\",\"level\":\"";
  line += name_of(level);
  line += "\",\"event\":";
  append_json_string(line, event);
  for (const auto& field : fields) {
    line += ',';
    append_json_string(line, field.name);
    line += ':';
    if (field.is_number) {
      line += field.value;
    } else {
      append_json_string(line, field.value);
    }
  }
  return line + "}";
}

constexpr std::string_view audit_event = "audit";

/// Events that say how the process is, and few at that: a client cannot cause one whenever it
/// likes. All others share the room of the lines that clients cause.
constexpr std::string_view of_process[] = {
    "admin_token",
    "admin_token_made",
    "admin_token_revoked",
    "admin_without_tokens",
    audit_event,
    "audit_broken",
    "audit_lines_lost",
    "audit_outcome_waits",
    "audit_waits",
    "authorizer_failing",
    "authorizer_recovered",
    "clock_off",
    "clock_recovered",
    "console_login",
    "disk_low",
    "disk_recovered",
    "drain_timed_out",
    "draining",
    "forget_failed",
    "forget_recovered",
    "handing_over",
    "handover_failed",
    "handover_refused",
    "listening",
    "provider_failing",
    "provider_recovered",
    "reap_failed",
    "reap_recovered",
    "reconcile_failed",
    "reconcile_recovered",
    "reload_failed",
    "reload_refused",
    "reloaded",
    "setting_differs",
    "settings_refused",
    "settings_warning",
    "socket_not_used",
    "start_failed",
    "stopped",
    "store_available",
    "store_error",
    "store_new",
    "store_opened",
    "store_recovered",
    "store_restored",
    "store_unavailable",
    "store_warning",
    "sweep_failed",
    "sweep_recovered",
    "traces_failing",
    "traces_recovered",
    "upstream_failing",
    "upstream_recovered",
    "working",
};

LogWriter::Kind kind_of(std::string_view event) {
  const bool is_known = std::ranges::find(of_process, event) != std::end(of_process);
  return is_known ? LogWriter::Kind::of_process : LogWriter::Kind::of_clients;
}

std::uint64_t seq_to_tell(std::initializer_list<LogField> fields) {
  std::uint64_t seq = 0;
  for (const LogField& field : fields) {
    // Else each line about a loss would be a further loss.
    if (field.name == "what" && field.value == admin::AuditTrail::lost_in_log) return 0;
    if (field.name != "seq") continue;
    std::from_chars(field.value.data(), field.value.data() + field.value.size(), seq);
  }
  return seq;
}

/// For code that has no log at hand.
std::atomic<ProcessLog*> the_log{nullptr};

constexpr ProcessLines lines_of_the_log{
    .write =
        [](std::string_view line) noexcept {
          the_log.load()->sink()(LogLevel::error, "internal_error",
                                 {{"reason", std::string(line)}});
        },
    .flush = []() noexcept { the_log.load()->flush(limits::log_abort_flush_max); },
    .last_line = [](std::string_view reason) { return the_log.load()->last_line(reason); }};

/// An exception that nothing caught: its text, where it has one.
[[noreturn]] void end_by_exception() noexcept {
  std::set_terminate(std::abort);  // What follows may lack memory, too.
  std::string why = "idem: an exception was not caught";
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    why += std::string(": ") + e.what();
  } catch (...) {  // NOLINT(bugprone-empty-catch): it has no text.
  }
  say_last_words(why);
  std::abort();
}

}  // namespace

ProcessLog::ProcessLog(const std::string& format) : is_json_(format == "json") {
  const bool colours = has_colours(STDERR_FILENO);
  as_line_ = [json = is_json_, colours](LogLevel level, std::string_view event,
                                        std::initializer_list<LogField> fields) {
    return (json ? json_line(level, event, fields) : text_line(level, event, fields, colours)) +
           "\n";
  };
  writer_ = std::make_shared<LogWriter>(
      STDERR_FILENO, LogWriter::Hooks{.report =
                                          [as_line = as_line_](const LogWriter::Lost& lost) {
                                            return as_line(
                                                LogLevel::warning, "log_lines_dropped",
                                                {{"lines", lost.lines}, {"seconds", lost.seconds}});
                                          },
                                      .lost_marked =
                                          [lost_audit = lost_audit_](std::uint64_t seq) {
                                            const std::lock_guard lock(lost_audit->mutex);
                                            if (lost_audit->report) lost_audit->report(seq);
                                          }});
  the_log.store(this);
  use_process_lines(&lines_of_the_log);
  terminate_before_ = std::set_terminate(end_by_exception);
}

ProcessLog::~ProcessLog() {
  when_audit_line_is_lost({});
  writer_->flush(limits::log_flush_max);
  std::set_terminate(terminate_before_);
  use_process_lines(nullptr);
}

LogSink ProcessLog::sink() const {
  return [writer = writer_, as_line = as_line_](LogLevel level, std::string_view event,
                                                std::initializer_list<LogField> fields) {
    writer->write(kind_of(event), as_line(level, event, fields),
                  event == audit_event ? seq_to_tell(fields) : 0);
  };
}

void ProcessLog::when_audit_line_is_lost(std::function<void(std::uint64_t seq)> report) {
  const std::lock_guard lock(lost_audit_->mutex);
  lost_audit_->report = std::move(report);
}

std::string ProcessLog::last_line(std::string_view reason) const {
  if (!is_json_) return std::string(reason);
  static constexpr std::string_view program = "idem: ";
  if (reason.starts_with(program)) reason.remove_prefix(program.size());
  std::string line =
      as_line_(LogLevel::error, "process_aborted", {{"reason", std::string(reason)}});
  line.pop_back();
  return line;
}

int ProcessLog::fail_start(const char* command, const StartFailure& failure) const {
  if (is_json_) {
    sink()(LogLevel::error, "start_failed", {{"reason", failure.why}});
  } else {
    writer_->write(LogWriter::Kind::of_process, error_line(command, failure.why));
  }
  return failure.exit_code;
}

}  // namespace idem::cli

// glibc's, which assertions of libraries call (Debian's RocksDB is compiled with its own): they
// find this one first, so that also their last line has the form of the log.
extern "C" [[gnu::noreturn, gnu::visibility("default")]] void
__assert_fail(  // NOLINT: glibc's name.
    const char* assertion, const char* file, unsigned line, const char* function) noexcept {
  const std::string fault = std::string("broken invariant: ") + assertion + " at " + file + ":" +
                            std::to_string(line) + " in " + (function != nullptr ? function : "?");
  if (const std::string* const damage = idem::DamageMet::sentence()) {
    idem::say_last_words("idem: " + *damage + ". It was met as a " + fault);
    std::_Exit(idem::cli::failed);
  }
  idem::say_last_words("idem: " + fault);
  std::abort();
}
