#include "cli/pages/completion.hpp"

#include "cli/command_line/words.hpp"

#include <set>

namespace idem::cli {
namespace {

constexpr const char* fish_engine = R"sh(
function __idem_at --description 'Whether the words so far are those of this command'
    set -l at idem
    set -l option
    set -l words (commandline -opc)
    set -e words[1]
    for word in $words
        if set -q option[1]
            set -e option
        else if contains -- $word $__idem_valued
            set option $word
        else if contains -- "$at $word" $__idem_commands
            set at "$at $word"
        end
    end
    test "$at" = "$argv[1]"
end
complete -c idem -f
)sh";

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

std::string option_line(const std::string& begin, const CommandOption& option) {
  std::string text = begin;
  for (const auto& name : option.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (option.is_file) {
    text += " -r -F";
  } else if (!option.value.empty()) {
    text += " -x";
    if (!option.choices.empty()) text += " -a " + fish_quoted(joined(option.choices, " "));
  }
  return text + " -d " + fish_quoted(brief(option.help)) + "\n";
}

std::string command_lines(const CompletedCommand& command) {
  // Quoted twice: fish runs the text as a command.
  const auto begin = "complete -c idem -n \"__idem_at '" + command.path + "'\"";
  std::string text;
  for (const auto* const one : command.commands) {
    text += begin + " -a " + one->name + " -d " + fish_quoted(brief(one->text)) + "\n";
  }
  for (const auto* const option : command.options) text += option_line(begin, *option);
  for (const auto* const one : command.positionals) {
    if (!one->choices.empty())
      text += begin + " -a " + fish_quoted(joined(one->choices, " ")) + "\n";
    if (one->is_file) text += begin + " -F\n";
  }
  return text;
}

}  // namespace

std::string fish_completion(const CommandTree& tree) {
  std::string commands = "set -g __idem_commands";
  std::set<std::string> valued;
  std::string lines;
  for (const auto& command : completed_commands(tree)) {
    if (command.path != tree.path) commands += " " + fish_quoted(command.path);
    for (const auto* const option : command.options) {
      if (!option->value.empty()) valued.insert(option->names.begin(), option->names.end());
    }
    lines += command_lines(command);
  }
  std::string names = "set -g __idem_valued";
  for (const auto& name : valued) names += " " + name;
  return "# Completion of idem for fish; `idem completion fish` prints it.\n" + commands + "\n" +
         names + fish_engine + lines;
}

}  // namespace idem::cli
