#include "cli/pages/completion.hpp"

namespace idem::cli {
namespace {

constexpr const char* zsh_engine = R"sh(
_idem() {
  local at=idem option= before file= positional_file=
  local -a verbs names flags valued positional choices
  integer i
  _idem_words $at
  names=(${verbs%%:*})
  for ((i = 2; i < CURRENT; i++)); do
    before=${words[i]}
    if [[ -n $option ]]; then
      option=
    elif (( ${valued[(Ie)$before]} )); then
      option=$before
    elif (( ${names[(Ie)$before]} )); then
      at+=" $before"
      _idem_words $at
      names=(${verbs%%:*})
    fi
  done
  if [[ -z $option && $PREFIX == --*=* ]]; then
    option=${PREFIX%%=*}
    compset -P '*='
  fi
  if [[ -n $option ]]; then
    _idem_values "$at $option"
    if (( $#choices )); then compadd -- $choices; fi
    if [[ -n $file ]]; then _files; fi
    return
  fi
  if [[ $PREFIX == -* ]]; then
    _describe -o option flags
    return
  fi
  if (( $#verbs )); then _describe command verbs; fi
  if (( $#positional )); then compadd -- $positional; fi
  if [[ -n $positional_file ]]; then _files; fi
}
if [[ $funcstack[1] == _idem ]]; then _idem "$@"; else compdef _idem idem; fi
)sh";

std::string zsh_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string zsh_words(const CompletedCommand& command) {
  std::string commands;
  std::string options;
  std::string valued;
  std::string positional;
  bool has_file = false;
  for (const auto* const one : command.commands) {
    commands += "\n        " + zsh_quoted(one->name + ":" + brief(one->text));
  }
  for (const auto* const option : command.options) {
    for (const auto& name : option->names) {
      options += "\n        " + zsh_quoted(name + ":" + brief(option->help));
      if (!option->value.empty()) valued += " " + name;
    }
  }
  for (const auto* const one : command.positionals) {
    for (const auto& choice : one->choices) positional += " " + zsh_quoted(choice);
    has_file |= one->is_file;
  }
  return "    (" + zsh_quoted(command.path) + ")\n      verbs=(" + commands + ")\n      flags=(" +
         options + ")\n      valued=(" + valued + " )\n      positional=(" + positional +
         " )\n      positional_file=" + (has_file ? "1" : "") + "\n      ;;\n";
}

std::string zsh_values(const CompletedCommand& command) {
  std::string text;
  for (const auto* const option : command.options) {
    if (option->choices.empty() && !option->is_file) continue;
    std::string choices;
    for (const auto& choice : option->choices) choices += " " + zsh_quoted(choice);
    for (const auto& name : option->names) {
      text += "    (" + zsh_quoted(command.path + " " + name) + ") " +
              (option->is_file ? "file=1" : "choices=(" + choices + " )") + " ;;\n";
    }
  }
  return text;
}

}  // namespace

std::string zsh_completion(const CommandTree& tree) {
  std::string words;
  std::string values;
  for (const auto& command : completed_commands(tree)) {
    words += zsh_words(command);
    values += zsh_values(command);
  }
  return "#compdef idem\n# Completion of idem for zsh; `idem completion zsh` prints it.\n"
         "_idem_words() { # what may stand behind a command\n  case $1 in\n" +
         words +
         "  esac\n}\n"
         "_idem_values() { # what an option takes\n  case $1 in\n" +
         values + "  esac\n}" + zsh_engine;
}

}  // namespace idem::cli
