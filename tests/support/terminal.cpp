#include "support/terminal.hpp"

#include <poll.h>
#include <pty.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "support/gateway_fixture.hpp"
#include "support/process.hpp"

namespace idem::test {
namespace {

std::vector<std::string> environment_for_a_person(const std::vector<std::string>& more) {
  std::vector<std::string> all = more;
  all.push_back("PATH=" + built_program("idem").parent_path().string() + ":/usr/bin:/bin");
  all.emplace_back("TERM=xterm");
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view text(*line);
    if (!text.starts_with("IDEM_") && !text.starts_with("NO_COLOR=")) all.emplace_back(text);
  }
  // Of two lines for one variable programs see the first one, or either: keep one.
  std::vector<std::string> kept;
  for (const auto& line : all) {
    const auto name = line.substr(0, line.find('=') + 1);
    const auto has_name = [&](const std::string& one) { return one.starts_with(name); };
    if (std::ranges::none_of(kept, has_name)) kept.push_back(line);
  }
  return kept;
}

}  // namespace

OnTerminal::OnTerminal(const std::filesystem::path& folder, const std::string& command, int columns,
                       const std::vector<std::string>& environment) {
  // All memory before the fork: other threads of this process may hold the allocator's lock.
  auto variables = environment_for_a_person(environment);
  std::vector<char*> envp;
  for (auto& line : variables) envp.push_back(line.data());
  envp.push_back(nullptr);
  std::string line = "cd " + folder.string() + " && exec " + command;
  std::string shell = "/bin/sh";
  std::string flag = "-c";
  char* const argv[] = {shell.data(), flag.data(), line.data(), nullptr};
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  pid_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::execve(argv[0], argv, envp.data());
  ::_exit(127);
}

OnTerminal::~OnTerminal() {
  if (pid_ > 0 && !status_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (terminal_ >= 0) ::close(terminal_);
}

testing::AssertionResult OnTerminal::shows(std::string_view part) {
  while (true) {
    const auto found = output_.find(part, seen_);
    if (found != output_.npos) {
      seen_ = found + part.size();
      return testing::AssertionSuccess();
    }
    if (!read_more()) {
      return testing::AssertionFailure() << "no \"" << part << "\" in\n" << output_;
    }
  }
}

void OnTerminal::type(const std::string& keys) const {
  EXPECT_EQ(::write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

int OnTerminal::exit_code() {
  while (read_more()) {
  }
  int status = 0;
  if (::waitpid(pid_, &status, 0) == pid_) status_ = status;
  return status_ && WIFEXITED(*status_) ? WEXITSTATUS(*status_) : -1;
}

bool OnTerminal::read_more() {
  pollfd waiting{.fd = terminal_, .events = POLLIN, .revents = 0};
  const auto wait = std::chrono::milliseconds(patience).count();
  if (::poll(&waiting, 1, static_cast<int>(wait)) <= 0) {
    ::kill(pid_, SIGKILL);
    return false;
  }
  char buffer[4096];
  const auto count = ::read(terminal_, buffer, sizeof buffer);
  if (count <= 0) return false;  // EIO: the last process with the terminal has ended.
  output_.append(buffer, static_cast<std::size_t>(count));
  return true;
}

}  // namespace idem::test
