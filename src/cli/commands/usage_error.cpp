#include "cli/commands/usage_error.hpp"

#include "cli/command_line/words.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal/messages.hpp"
#include "config/words.hpp"
#include "core/bytes/ascii.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace idem::cli {
namespace {

/// "; did you mean WORD? ", or "; " alone.
std::string suggestion(const std::string& wrong, const std::vector<std::string>& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  const auto meant = config::did_you_mean(wrong, views);
  return meant.empty() ? "; " : meant + " ";
}

std::vector<std::string> commands_of(const Command& command) {
  std::vector<std::string> names;
  for (const auto& one : command.commands()) names.push_back(one.name());
  return names;
}

/// The long names of the options that may stand behind `command`.
std::vector<std::string> options_of(const Command& command) {
  std::vector<std::string> names;
  for (std::optional<Command> at = command; at;
       at = at->takes_options_of_parent() ? at->parent() : std::nullopt) {
    for (const auto& option : at->options()) {
      for (const auto& name : option.names) {
        if (name.starts_with("--")) names.push_back(name);
      }
    }
  }
  return names;
}

/// The parser's own words, which begin with a capital unless an option's name does.
std::string own_words(std::string text) {
  if (text.size() > 1 && text[1] >= 'a' && text[1] <= 'z') text[0] = lower_letter(text[0]);
  while (text.ends_with('\n') || text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

int refuse_usage(const Command& program, const std::string& complaint) {
  Command at = program;
  std::string command;
  for (auto given = at.given_commands(); !given.empty(); given = at.given_commands()) {
    at = given.front();
    command += (command.empty() ? "" : " ") + at.name();
  }
  const std::string help = "idem " + command + (command.empty() ? "--help" : " --help");
  const auto refuse = [&](const std::string& sentence) {
    return say_error(command, sentence, usage);
  };
  const auto left = program.all_words_left();
  const auto option = std::ranges::find_if(
      left, [](const std::string& word) { return word.size() > 1 && word.starts_with('-'); });
  if (option != left.end() && *option != "--") {
    // Behind the "=" there may be a secret.
    const std::string name = option->substr(0, option->find('='));
    return refuse("there is no option " + config::shown(name) + suggestion(name, options_of(at)) +
                  help + " lists them");
  }
  const bool lacks_command = at.requires_command();
  const auto words = at.words_left();
  if (lacks_command && !words.empty()) {
    return refuse("there is no command " + config::shown(words.front()) +
                  suggestion(words.front(), commands_of(at)) + help + " lists them");
  }
  if (lacks_command) {
    return refuse("a command is missing: " + joined(commands_of(at), ", ") + "; " + help +
                  " says what each does");
  }
  if (!left.empty()) {
    return refuse(config::shown(left.front()) + " is one word too many; " + help +
                  " shows how to write it");
  }
  return refuse(own_words(complaint) + "; " + help + " shows how to write it");
}

}  // namespace idem::cli
