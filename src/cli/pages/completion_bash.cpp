#include "cli/pages/completion.hpp"

#include "cli/command_line/words.hpp"

namespace idem::cli {
namespace {

constexpr const char* bash_engine = R"sh(
_idem() {
  local word=${COMP_WORDS[COMP_CWORD]} at=idem option= i
  local commands options valued positional positional_file choices= file=
  _idem_words "$at"
  for ((i = 1; i < COMP_CWORD; i++)); do
    local before=${COMP_WORDS[i]}
    if [[ $before == = ]]; then # --name=value is three words.
      continue
    elif [[ -n $option ]]; then
      option=
    elif [[ " $valued " == *" $before "* ]]; then
      option=$before
    elif [[ " $commands " == *" $before "* ]]; then
      at+=" $before"
      _idem_words "$at"
    fi
  done
  [[ $word == = ]] && word=
  if [[ -n $option ]]; then
    _idem_values "$at $option"
  elif [[ $word == -* ]]; then
    choices=$options
  else
    choices="$commands $positional"
    file=$positional_file
  fi
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
  if [[ -n $file ]]; then
    compopt -o filenames 2> /dev/null
    mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -F _idem idem
)sh";

void add_word(std::string& words, const std::string& word) {
  words += (words.empty() ? "" : " ") + word;
}

std::string bash_words(const CompletedCommand& command) {
  std::string commands;
  std::string options;
  std::string valued;
  std::string positional;
  bool has_file = false;
  for (const auto* const one : command.commands) add_word(commands, one->name);
  for (const auto* const option : command.options) {
    add_word(options, joined(option->names, " "));
    if (!option->value.empty()) add_word(valued, joined(option->names, " "));
  }
  for (const auto* const one : command.positionals) {
    if (!one->choices.empty()) add_word(positional, joined(one->choices, " "));
    has_file |= one->is_file;
  }
  return "    '" + command.path + "')\n      commands='" + commands + "'\n      options='" +
         options + "'\n      valued='" + valued + "'\n      positional='" + positional +
         "'\n      positional_file=" + (has_file ? "1" : "") + "\n      ;;\n";
}

std::string bash_values(const CompletedCommand& command) {
  std::string text;
  for (const auto* const option : command.options) {
    if (option->choices.empty() && !option->is_file) continue;
    std::string patterns;
    for (const auto& name : option->names) {
      patterns += (patterns.empty() ? "'" : " | '") + command.path + " " + name + "'";
    }
    text += "    " + patterns + ") " +
            (option->is_file ? "file=1" : "choices='" + joined(option->choices, " ") + "'") +
            " ;;\n";
  }
  return text;
}

}  // namespace

std::string bash_completion(const CommandTree& tree) {
  std::string words;
  std::string values;
  for (const auto& command : completed_commands(tree)) {
    words += bash_words(command);
    values += bash_values(command);
  }
  return "# Completion of idem for bash; `idem completion bash` prints it.\n"
         "_idem_words() { # what may stand behind a command\n  case $1 in\n" +
         words +
         "  esac\n}\n"
         "_idem_values() { # what an option takes\n  case $1 in\n" +
         values + "  esac\n}" + bash_engine;
}

}  // namespace idem::cli
