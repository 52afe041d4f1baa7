#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace idem::test {

/// How long anything may take before a test gives up. Long, because the machine may be busy; nobody
/// ever waits for it to pass.
inline constexpr std::chrono::seconds patience{30};

struct ProcessOptions {
  std::filesystem::path program;
  std::vector<std::string> arguments{};
  std::vector<std::string> environment{};  ///< `NAME=VALUE`, added to this process's own.
  /// RLIMIT_FSIZE: to the program, a disk that is full from there on. At least 1: ThreadSanitizer
  /// writes a file before main(), and at 0 the kernel ends the process.
  std::optional<std::uint64_t> file_bytes_max{};
  /// Sockets that the program finds as systemd passes them (LISTEN_FDS), and their names.
  std::vector<int> passed{};
  std::string passed_names{};
  std::optional<int> output_pipe_bytes{};  ///< Of the pipe that takes its outputs.
  /// Lines that the program sees as /etc/hosts, in a mount of its own; can_have_own_hosts().
  std::filesystem::path hosts{};
};

/// Whether this machine lets a test do that.
bool can_have_own_hosts();

/// A program that runs for as long as this object lives. Both its outputs are kept, and printed
/// when the test has failed. The kernel kills it when the *thread* that started it ends.
class Process {
 public:
  explicit Process(const ProcessOptions& options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// The first line that contains `part` from the byte `from` of output() on, once there is one;
  /// nothing when the program ended or the time is over.
  std::optional<std::string> wait_for_line(std::string_view part,
                                           std::chrono::milliseconds timeout = patience,
                                           std::size_t from = 0);
  /// HOST:PORT of its `listening address=... role=ROLE` line; empty when it did not come.
  std::string wait_for_address(std::string_view role);

  /// Sends a signal if it has not ended.
  void signal(int number);
  /// The status of waitpid(2) once it ended; nothing when the time is over.
  std::optional<int> wait(std::chrono::milliseconds timeout = patience);
  /// Its exit status, or 128 + the signal that killed it, once it ended; -1 when the time is over.
  int exit_code(std::chrono::milliseconds timeout = patience);
  /// True once a signal stopped it (SIGSTOP); false when it ended instead or the time is over.
  bool wait_stopped(std::chrono::milliseconds timeout = patience);
  bool ended();
  pid_t pid() const { return pid_; }
  std::string output();
  /// Stops reading its outputs, as a stopped `tee` does, and goes on.
  void read_no_output();
  void read_output_again();

 private:
  void read_output();
  void reap();

  pid_t pid_ = -1;
  int output_fd_ = -1;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string output_;
  bool output_closed_ = false;
  bool reads_output_ = true;
  std::optional<int> status_;
  bool stopped_ = false;

  std::thread reader_;
  std::thread reaper_;
};

}  // namespace idem::test
