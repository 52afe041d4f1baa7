#include "cli/process/handover.hpp"

#include <idem/record.hpp>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace idem::cli {
namespace {

constexpr auto check_max = std::chrono::seconds(10);
constexpr std::size_t complaint_bytes_max = 2'000;

std::string path_of_this_program() {
  std::string path(4096, '\0');
  const auto size = ::readlink("/proc/self/exe", path.data(), path.size());
  path.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return path;
}

std::vector<std::string> arguments_of_this_process() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> arguments;
  for (std::size_t from = 0; from < all.size();) {
    const std::size_t end = std::min(all.find('\0', from), all.size());
    arguments.push_back(all.substr(from, end - from));
    from = end + 1;
  }
  return arguments;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// The child has no descriptor of this process but the standard ones, and none of its blocked
/// signals.
int spawn(const std::string& program, std::vector<std::string> arguments, int output, pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t how;
  sigset_t none;
  sigemptyset(&none);
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawnattr_init(&how);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  const auto argv = pointers_to(arguments);
  const int error = ::posix_spawn(&pid, program.c_str(), &files, &how, argv.data(), environ);
  posix_spawnattr_destroy(&how);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

/// What is written to it until its end; false: that took too long.
bool read_all(int from, std::string& text) {
  const MonotonicTime end = MonotonicClock::now() + check_max;
  for (;;) {
    const auto left = std::chrono::ceil<Millis>(end - MonotonicClock::now()).count();
    pollfd readable{from, POLLIN, 0};
    if (left <= 0 || ::poll(&readable, 1, static_cast<int>(left)) == 0) return false;
    char piece[1024];
    const auto got = ::read(from, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    const auto room = complaint_bytes_max - std::min(text.size(), complaint_bytes_max);
    text.append(piece, std::min(static_cast<std::size_t>(got), room));
  }
}

std::string on_one_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

}  // namespace

Handover::Handover() : program_(path_of_this_program()), arguments_(arguments_of_this_process()) {}

Handover::~Handover() {
  for (const auto& [socket, role] : kept_) ::close(socket);
}

std::expected<void, std::string> Handover::check() const {
  std::vector<std::string> arguments{program_, "config",  "check",
                                     "--role", "gateway", "--ask-store"};
  if (arguments_.size() > 2) {
    arguments.insert(arguments.end(), arguments_.begin() + 2, arguments_.end());
  }
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(std::strerror(errno));
  pid_t pid = -1;
  const int error = spawn(program_, std::move(arguments), ends[1], pid);
  ::close(ends[1]);
  std::string said;
  const bool is_over = error != 0 || read_all(ends[0], said);
  ::close(ends[0]);
  if (error != 0) return std::unexpected(program_ + ": " + std::strerror(error));
  if (!is_over) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (!is_over) return std::unexpected(program_ + " config check: no answer in time");
  return std::unexpected(program_ + " config check: " + on_one_line(std::move(said)));
}

void Handover::keep(int socket, std::string role) {
  // Above the places that exec() gives them.
  constexpr int out_of_the_way = 64;
  const int kept = ::fcntl(socket, F_DUPFD_CLOEXEC, out_of_the_way);
  if (kept >= 0) kept_.emplace_back(kept, std::move(role));
}

std::string Handover::exec() {
  std::string names;
  int next = SD_LISTEN_FDS_START;
  for (const auto& [socket, role] : kept_) {
    ::dup2(socket, next++);
    names += (names.empty() ? "" : ":") + role;
  }
  // Also those of libraries that did not ask for their end. A thread of a library's may still use
  // one: its number must not mean another connection before the threads end.
  ::close_range(static_cast<unsigned>(next), ~0U, CLOSE_RANGE_CLOEXEC);
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", std::to_string(next - SD_LISTEN_FDS_START).c_str(), 1);
  ::setenv("LISTEN_FDNAMES", names.c_str(), 1);
  const auto argv = pointers_to(arguments_);
  ::execv(program_.c_str(), argv.data());
  return program_ + ": " + std::strerror(errno);
}

}  // namespace idem::cli
