#include "cli/commands/completion_command.hpp"

#include "cli/exit_code.hpp"
#include "cli/pages/completion.hpp"

#include <cstdio>

namespace idem::cli {

CompletionCommand::CompletionCommand(const Command& program)
    : program_(program),
      command_(
          program.add_command("completion", "Print a script that completes words for a shell")) {
  command_.add_option("SHELL", shell_, "the shell").required().one_of({"bash", "zsh", "fish"});
}

bool CompletionCommand::parsed() const { return command_.parsed(); }

int CompletionCommand::run() const {
  const auto tree = read_tree(program_);
  const auto script = shell_ == "bash"  ? bash_completion(tree)
                      : shell_ == "zsh" ? zsh_completion(tree)
                                        : fish_completion(tree);
  std::fputs(script.c_str(), stdout);
  return done;
}

}  // namespace idem::cli
