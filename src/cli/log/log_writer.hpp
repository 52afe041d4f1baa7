#pragma once

#include <idem/record.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace idem::cli {

/// Writes lines to a descriptor on a thread of its own, so that nobody else waits for its reader.
/// Each kind of line has its own room (limits::log_waiting_bytes_max); a line that finds none is
/// lost and counted. Lines keep their order. Safe from any thread.
class LogWriter {
 public:
  enum class Kind : std::uint8_t {
    of_clients,  ///< Clients cause these, as many as they like.
    of_process,
  };
  struct Lost {
    std::uint64_t lines = 0;    ///< Since the last report.
    std::uint64_t seconds = 0;  ///< Since the first of them.
  };
  struct Hooks {
    /// The line that reports lost ones, as soon as the reader takes lines again. Called on the
    /// writer's thread.
    std::function<std::string(const Lost&)> report;
    /// A line with this mark was lost. Called on the thread that lost it, which holds no lock.
    std::function<void(std::uint64_t mark)> lost_marked;
  };

  /// The descriptor stays open, and as it is. The thread takes no signals.
  LogWriter(int descriptor, Hooks hooks);
  /// Writes what waits, as by flush(limits::log_flush_max).
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  /// With its end of line. `mark`: not 0 where its loss is reported.
  void write(Kind kind, std::string line, std::uint64_t mark = 0);

  /// Returns when all lines so far are written. After `patience`, those that wait are lost, and as
  /// long as the reader then takes nothing, a further call has little patience.
  void flush(Millis patience);

  /// Lines that were lost so far.
  std::uint64_t lost() const;

 private:
  struct Line {
    Kind kind;
    std::string text;
    std::uint64_t mark;
  };
  using Lines = std::vector<Line>;

  std::size_t& room_of(Kind kind) { return room_[static_cast<std::size_t>(kind)]; }
  void count_lost(std::size_t lines);
  void tell_lost(const Lines& lines) const;
  void run();
  /// False: the reader did not take it all, and will not get it again.
  bool write_out(std::string_view text, std::uint64_t abandoned);
  bool is_abandoned(std::uint64_t since) const;
  Lines take();
  Lost to_report();
  void end(const Lines& lines, bool are_written);

  const int descriptor_;
  const Hooks hooks_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable written_;
  std::deque<Line> waiting_;
  std::size_t room_[2];
  std::uint64_t accepted_ = 0;
  std::uint64_t ended_ = 0;      ///< Of those: written or lost.
  std::uint64_t abandoned_ = 0;  ///< How often flush() gave lines up.
  bool is_given_up_ = false;     ///< The reader has taken nothing since.
  std::uint64_t lost_ = 0;
  std::uint64_t reported_ = 0;  ///< Of those.
  MonotonicTime lost_since_{};
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace idem::cli
