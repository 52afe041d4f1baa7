#pragma once

#include "cli/exit_code.hpp"
#include "cli/log/log_writer.hpp"

#include <idem/log.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace idem::cli {

/// Why a process does not start.
struct StartFailure {
  std::string why;  ///< A sentence.
  int exit_code = failed;
};

/// The log of a gateway or worker: one line per event on stderr, as text ("2026-11-01T12:00:00.000Z
/// info event name=value ...") or, with format "json", as a JSON object. The time is in UTC. Nobody
/// waits for the reader of stderr (LogWriter), and an abort writes what waits. One for a process.
class ProcessLog {
 public:
  explicit ProcessLog(const std::string& format);
  /// Writes what waits, within limits::log_flush_max.
  ~ProcessLog();
  ProcessLog(const ProcessLog&) = delete;
  ProcessLog& operator=(const ProcessLog&) = delete;

  LogSink sink() const;
  /// See LogWriter.
  void flush(Millis patience) { writer_->flush(patience); }
  std::uint64_t lost() const { return writer_->lost(); }

  /// `report` is called for each line `audit` that is lost, on any thread; after a call with an
  /// empty one, never again.
  void when_audit_line_is_lost(std::function<void(std::uint64_t seq)> report);

  /// Says why the process does not start: as an event where the log is JSON, because a reader of it
  /// expects nothing else, otherwise as a plain sentence. The exit code.
  int fail_start(const char* command, const StartFailure& failure) const;

  /// The last line of a process that aborts, without its end: an event where the log is JSON,
  /// otherwise the sentence as it is.
  std::string last_line(std::string_view reason) const;

 private:
  struct LostAudit {
    std::mutex mutex;
    std::function<void(std::uint64_t)> report;
  };
  bool is_json_;
  std::function<std::string(LogLevel, std::string_view, std::initializer_list<LogField>)> as_line_;
  std::shared_ptr<LostAudit> lost_audit_ = std::make_shared<LostAudit>();
  std::shared_ptr<LogWriter> writer_;
  std::terminate_handler terminate_before_ = nullptr;
};

}  // namespace idem::cli
