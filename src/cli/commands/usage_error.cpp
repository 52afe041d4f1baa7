#include "cli/commands/usage_error.hpp"

#include "cli/command_line/words.hpp"
#include "cli/commands.hpp"
#include "cli/terminal/messages.hpp"
#include "config/words.hpp"

#include <algorithm>
#include <cctype>

namespace idem::cli {
namespace {

bool any_command(const CLI::App* /*command*/) { return true; }

/// "; did you mean WORD? ", or "; " alone.
std::string suggestion(const std::string& wrong, const std::vector<std::string>& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  const auto meant = config::did_you_mean(wrong, views);
  return meant.empty() ? "; " : meant + " ";
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* const one : app.get_subcommands(any_command)) names.push_back(one->get_name());
  return names;
}

/// Those that may stand behind `app`.
std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* at = &app; at != nullptr;
       at = at->get_fallthrough() ? at->get_parent() : nullptr) {
    for (const auto* const option : at->get_options()) {
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

/// The parser's own words, which begin with a capital unless an option's name does.
std::string own_words(const CLI::ParseError& error) {
  std::string text = error.what();
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  while (text.ends_with('\n') || text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

int refuse_usage(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* at = &app;
  std::string command;
  for (auto parsed = at->get_subcommands(); !parsed.empty(); parsed = at->get_subcommands()) {
    at = parsed.front();
    command += (command.empty() ? "" : " ") + at->get_name();
  }
  const std::string help = "idem " + command + (command.empty() ? "--help" : " --help");
  const auto refuse = [&](const std::string& sentence) {
    return say_error(command, sentence, usage);
  };
  const auto left = app.remaining(true);
  const auto option = std::ranges::find_if(
      left, [](const std::string& word) { return word.size() > 1 && word.starts_with('-'); });
  if (option != left.end() && *option != "--") {
    // Behind the "=" there may be a secret.
    const std::string name = option->substr(0, option->find('='));
    return refuse("there is no option " + config::shown(name) + suggestion(name, options_of(*at)) +
                  help + " lists them");
  }
  const bool lacks_command = at->get_require_subcommand_min() > 0;
  const auto words = at->remaining();
  if (lacks_command && !words.empty()) {
    return refuse("there is no command " + config::shown(words.front()) +
                  suggestion(words.front(), commands_of(*at)) + help + " lists them");
  }
  if (lacks_command) {
    return refuse("a command is missing: " + joined(commands_of(*at), ", ") + "; " + help +
                  " says what each does");
  }
  if (!left.empty()) {
    return refuse(config::shown(left.front()) + " is one word too many; " + help +
                  " shows how to write it");
  }
  return refuse(own_words(error) + "; " + help + " shows how to write it");
}

}  // namespace idem::cli
