#include "check/command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <optional>
#include <utility>

namespace idem::check {
namespace {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::milliseconds;

// A number, or a small JSON.
constexpr std::size_t output_bytes_max = 1024UL * 1024;

// A signal handler reads both. One command runs at a time, so that there is one group.
std::atomic<pid_t> group{0};
std::atomic<int> came{0};  // A signal, while a command runs; 0: none.
struct sigaction handlers_before[NSIG];

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(); }
  int fd() const noexcept { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

/// Passes the signal on, and then does what was done with it before.
void pass_on(int signal) {
  const int error = errno;
  came = signal;
  if (const pid_t of = group.load(); of > 0) ::kill(-of, signal);
  struct sigaction& before = handlers_before[signal];
  if (before.sa_handler == SIG_DFL) {
    ::sigaction(signal, &before, nullptr);
    ::raise(signal);
  } else if (before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
    if ((before.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) before.sa_handler = SIG_DFL;
  }
  errno = error;
}

/// While a command runs, signals that end this program end the command too.
class Forwarding {
 public:
  Forwarding() {
    came = 0;
    for (const int signal : {SIGINT, SIGTERM}) {
      struct sigaction action{};
      ::sigaction(signal, nullptr, &handlers_before[signal]);
      action.sa_handler = &pass_on;
      action.sa_flags = SA_RESTART;
      ::sigaction(signal, &action, nullptr);
    }
  }
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;
  ~Forwarding() {
    group = 0;
    for (const int signal : {SIGINT, SIGTERM}) {
      ::sigaction(signal, &handlers_before[signal], nullptr);
    }
  }
};

/// Its process, which leads a group; none: it cannot be started.
std::optional<pid_t> start(const std::string& command, int output) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (output >= 0) {
    ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  } else {
    ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  sigset_t usual;
  ::sigemptyset(&usual);
  ::posix_spawnattr_setsigmask(&attributes, &usual);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::sigaddset(&usual, signal);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  std::string shell = "sh";
  std::string option = "-c";
  std::string text = command;
  const std::array<char*, 4> words{shell.data(), option.data(), text.data(), nullptr};
  pid_t process = 0;
  const int failed = ::posix_spawn(&process, "/bin/sh", &files, &attributes, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0) return std::nullopt;
  return process;
}

/// What is there of the output.
void drain(File& output, std::string& text) {
  std::array<char, 16 * 1024> buffer{};
  for (;;) {
    const auto got = ::read(output.fd(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return output.close();
    const auto room = output_bytes_max - text.size();
    text.append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
  }
}

/// Until the process has exited; false: it had not after `until`. A signal that came is sent again
/// until it works: the first one may have met the shell between two programs.
bool wait_for(const File& process, File& output, std::string& text, Clock::time_point until) {
  for (;;) {
    auto left = std::chrono::ceil<Millis>(until - Clock::now());
    if (left <= Millis(0)) return false;
    left = std::min(left, Millis(100));
    if (const int signal = came.load(); signal != 0) ::kill(-group.load(), signal);
    std::array<pollfd, 2> both{pollfd{process.fd(), POLLIN, 0}, pollfd{output.fd(), POLLIN, 0}};
    if (::poll(both.data(), both.size(), static_cast<int>(left.count())) < 0) continue;  // EINTR
    if (both[1].revents != 0) drain(output, text);
    if (both[0].revents != 0) return true;
  }
}

}  // namespace

std::expected<std::string, std::string> run_command(const std::string& command, Millis most,
                                                    Output output) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  std::array<int, 2> ends{-1, -1};
  if (output == Output::collected && ::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return std::unexpected("the command cannot be run: " + command);
  }
  File from(ends[0]);
  File into(ends[1]);
  // The reader alone does not block: the command must not meet a full pipe as an error.
  if (into.fd() >= 0) ::fcntl(into.fd(), F_SETFL, 0);
  const Forwarding forwarding;
  const auto process = start(command, into.fd());
  into.close();
  if (!process) return std::unexpected("the command cannot be run: " + command);
  group = *process;
  // One that came before the group was known has not reached it.
  if (const int signal = came.load(); signal != 0) ::kill(-*process, signal);
  // The header of glibc 2.36 declares pidfd_open() for C alone.
  const File handle(static_cast<int>(::syscall(SYS_pidfd_open, *process, 0)));
  std::string text;
  const bool has_exited = handle.fd() >= 0 && wait_for(handle, from, text, Clock::now() + most);
  if (!has_exited) ::kill(-*process, SIGKILL);
  int status = 0;
  while (::waitpid(*process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!has_exited) {
    return std::unexpected("the command did not end within " + std::to_string(most.count()) +
                           " ms: " + command);
  }
  if (from.fd() >= 0) drain(from, text);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return std::unexpected("the command failed: " + command);
  }
  return text;
}

}  // namespace idem::check
