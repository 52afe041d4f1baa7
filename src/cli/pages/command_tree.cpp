#include "cli/pages/command_tree.hpp"

#include <algorithm>
#include <string_view>

namespace idem::cli {
namespace {

std::vector<std::string> paragraphs_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t from = 0; from <= text.size();) {
    const auto to = std::min(text.find('\n', from), text.size());
    lines.emplace_back(text.substr(from, to - from));
    from = to + 1;
  }
  return lines;
}

CommandTree read_command(const Command& command, const std::string& parent) {
  CommandTree tree;
  tree.name = command.name();
  tree.path = parent.empty() ? tree.name : parent + " " + tree.name;
  tree.text = command.text();
  tree.takes_options_of_parent = command.takes_options_of_parent();
  if (const auto notes = command.notes(); !notes.empty()) tree.notes = paragraphs_of(notes);
  tree.options = command.options();
  for (const auto& one : command.commands()) tree.commands.push_back(read_command(one, tree.path));
  return tree;
}

}  // namespace

CommandTree read_tree(const Command& program) { return read_command(program, {}); }

std::string brief(const std::string& help) {
  constexpr std::size_t bytes_max = 72;
  std::string text = help.substr(0, std::min(help.find("; "), help.find(" (IDEM_")));
  if (text.size() <= bytes_max) return text;
  return text.substr(0, text.rfind(' ', bytes_max)) + " ...";
}

}  // namespace idem::cli
