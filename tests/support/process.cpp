#include "support/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "support/admin_answers.hpp"

namespace idem::test {
namespace {

/// A thousand clients need more than the usual 1,024 descriptors, here and in the gateway.
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  for (auto& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

// Of the variables that begin with IDEM_ only `added`: those of a run of tests (IDEM_SEED,
// IDEM_REQUIRE_LIVE) are no settings, and a person's own ones would change what is tested.
std::vector<std::string> environment_with(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view text(*line);
    const auto name = text.substr(0, text.find('=') + 1);
    bool replaced = name.starts_with("IDEM_");
    for (const auto& other : added) replaced = replaced || other.starts_with(name);
    if (!replaced) all.emplace_back(text);
  }
  return all;
}

/// In the child: `line` is the variable with its process id.
void pass(const std::vector<int>& sockets, std::string& line) {
  constexpr int first = 3;
  constexpr int out_of_the_way = 600;
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    ::dup2(sockets[i], out_of_the_way + static_cast<int>(i));
  }
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    ::dup2(out_of_the_way + static_cast<int>(i), first + static_cast<int>(i));
    ::close(out_of_the_way + static_cast<int>(i));
  }
  const std::size_t name = line.find('=') + 1;
  std::snprintf(line.data() + name, line.size() + 1 - name, "%d", static_cast<int>(::getpid()));
}

/// The command, its program first, behind what gives it these hosts.
std::vector<std::string> command_of(const ProcessOptions& options) {
  std::vector<std::string> words;
  if (!options.hosts.empty()) {
    // Root needs no name space of users.
    words = {"/usr/bin/unshare",
             ::geteuid() == 0 ? "-m" : "-rm",
             "/bin/sh",
             "-c",
             "mount --bind \"$0\" /etc/hosts && exec \"$@\"",
             options.hosts.string()};
  }
  words.push_back(options.program.string());
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  return words;
}

}  // namespace

bool can_have_own_hosts() {
  Process process({.program = "/bin/true", .hosts = "/dev/null"});
  return process.exit_code() == 0;
}

Process::Process(const ProcessOptions& options) {
  raise_file_limit();
  std::vector<std::string> words = command_of(options);
  auto variables = environment_with(options.environment);
  if (!options.passed.empty()) {
    variables.push_back("LISTEN_FDS=" + std::to_string(options.passed.size()));
    variables.push_back("LISTEN_FDNAMES=" + options.passed_names);
    variables.emplace_back("LISTEN_PID=0000000000");  // The child knows it.
  }
  const auto argv = pointers(words);
  const auto envp = pointers(variables);
  int ends[2] = {-1, -1};
  // Close-on-exec, or a sibling started at this moment would hold this pipe open for ever.
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  if (options.output_pipe_bytes) ::fcntl(ends[1], F_SETPIPE_SZ, *options.output_pipe_bytes);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    if (options.file_bytes_max) {
      const rlimit limit{.rlim_cur = *options.file_bytes_max, .rlim_max = *options.file_bytes_max};
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (!options.passed.empty()) pass(options.passed, variables.back());
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  output_fd_ = ends[0];
  reader_ = std::thread([this] { read_output(); });
  if (pid_ > 0) reaper_ = std::thread([this] { reap(); });
}

Process::~Process() {
  signal(SIGKILL);
  read_output_again();
  if (reaper_.joinable()) reaper_.join();
  if (reader_.joinable()) reader_.join();
  if (output_fd_ >= 0) ::close(output_fd_);
  // A sanitizer speaks on the child's stderr, and a child that is killed has no exit status to
  // tell.
  for (const auto* finding : {"Sanitizer:", "runtime error:", "broken invariant"}) {
    if (output_.find(finding) != std::string::npos) ADD_FAILURE() << "the process reported a bug";
  }
  if (testing::Test::HasFailure()) {
    fmt::print(stderr, "---- output of process {} ----\n{}----\n", pid_, output_);
  }
}

void Process::read_no_output() {
  const std::lock_guard lock(mutex_);
  reads_output_ = false;
}

void Process::read_output_again() {
  const std::lock_guard lock(mutex_);
  reads_output_ = true;
  changed_.notify_all();
}

void Process::read_output() {
  char buffer[4096];
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return reads_output_; });
    }
    const ssize_t count = ::read(output_fd_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    const std::lock_guard lock(mutex_);
    if (count > 0) output_.append(buffer, static_cast<std::size_t>(count));
    if (count <= 0) output_closed_ = true;
    changed_.notify_all();
    if (count <= 0) return;
  }
}

void Process::reap() {
  for (;;) {
    // Looked at without being taken, so that signal() can never reach a pid that is free again.
    siginfo_t info{};
    const auto id = static_cast<id_t>(pid_);
    if (::waitid(P_PID, id, &info, WEXITED | WSTOPPED | WNOWAIT) != 0 && errno == EINTR) continue;
    const std::lock_guard lock(mutex_);
    int status = 0;
    if (::waitpid(pid_, &status, WUNTRACED | WNOHANG) != pid_) continue;
    changed_.notify_all();
    if (WIFSTOPPED(status)) {
      stopped_ = true;
      continue;
    }
    status_ = status;
    return;
  }
}

std::optional<std::string> Process::wait_for_line(std::string_view part,
                                                  std::chrono::milliseconds timeout,
                                                  std::size_t from) {
  std::unique_lock lock(mutex_);
  std::optional<std::string> line;
  changed_.wait_for(lock, timeout, [&] {
    const auto at = output_.find(part, from);
    const auto end = at == output_.npos ? at : output_.find('\n', at);
    if (end == output_.npos) return output_closed_;
    const auto before = output_.rfind('\n', at);
    const auto start = before == output_.npos ? 0 : before + 1;
    line = output_.substr(start, end - start);
    return true;
  });
  return line;
}

namespace {

/// What the line of the operator's token names; empty: there is none.
std::string token_file_in(std::string_view log, bool json) {
  const std::string_view mark = json ? R"("event":"admin_token","file":")" : "admin_token file=";
  const auto at = log.find(mark);
  if (at == log.npos) return {};
  const auto rest = log.substr(at + mark.size());
  return std::string(rest.substr(0, rest.find_first_of(json ? "\"" : " \n")));
}

}  // namespace

std::string Process::wait_for_address(std::string_view role) {
  // The first listener reported is the gateway's, and its line shows the log's format.
  const auto first = wait_for_line("listening");
  const bool json = first && first->starts_with('{');
  const auto line =
      wait_for_line(json ? fmt::format(R"("role":"{}")", role) : fmt::format("role={}", role));
  const std::string_view mark = json ? R"("address":")" : "listening address=";
  const auto at = line ? line->find(mark) : std::string::npos;
  if (at == std::string::npos) return {};
  const auto start = at + mark.size();
  std::string address = line->substr(start, line->find(json ? '"' : ' ', start) - start);
  if (role == "admin") {
    watch_admin(address, token_file_in(output(), json));
  } else {
    forget_admin(address);
  }
  return address;
}

void Process::signal(int number) {
  const std::lock_guard lock(mutex_);
  if (number == SIGCONT) stopped_ = false;
  if (pid_ > 0 && !status_) ::kill(pid_, number);
}

std::optional<int> Process::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  // Its last words too: the exit may be seen before the pipe has been read to its end.
  changed_.wait_for(lock, timeout, [&] {
    const bool has_all = output_closed_ || !reads_output_;
    return (status_.has_value() && has_all) || pid_ <= 0;
  });
  return status_;
}

int Process::exit_code(std::chrono::milliseconds timeout) {
  const auto status = wait(timeout);
  if (!status) return -1;
  return WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
}

bool Process::wait_stopped(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return stopped_ || status_.has_value(); });
  return stopped_;
}

bool Process::ended() {
  const std::lock_guard lock(mutex_);
  return status_.has_value();
}

std::string Process::output() {
  const std::lock_guard lock(mutex_);
  return output_;
}

}  // namespace idem::test
