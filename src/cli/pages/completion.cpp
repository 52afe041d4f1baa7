#include "cli/pages/completion.hpp"

namespace idem::cli {
namespace {

void add(std::vector<CompletedCommand>& all, const CommandTree& tree, const CommandTree* parent) {
  CompletedCommand one{.path = tree.path};
  for (const auto& command : tree.commands) one.commands.push_back(&command);
  const auto add_options = [&](const CommandTree& from) {
    for (const auto& option : from.options) {
      if (!option.names.empty()) one.options.push_back(&option);
      if (!option.positional.empty()) one.positionals.push_back(&option);
    }
  };
  add_options(tree);
  if (parent != nullptr && tree.takes_options_of_parent) {
    for (const auto& option : parent->options) {
      // Each has a --help of its own.
      if (!option.names.empty() && option.names.back() != "--help") one.options.push_back(&option);
    }
  }
  all.push_back(std::move(one));
  for (const auto& command : tree.commands) add(all, command, &tree);
}

}  // namespace

std::vector<CompletedCommand> completed_commands(const CommandTree& tree) {
  std::vector<CompletedCommand> all;
  add(all, tree, nullptr);
  return all;
}

}  // namespace idem::cli
