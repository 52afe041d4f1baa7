#include "cli/pages/man_page.hpp"

#include "cli/pages/exit_codes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace idem::cli {
namespace {

constexpr std::string_view exit_codes = "Exit codes: ";

std::string bold(const std::string& text) { return "\\fB" + roff(text) + "\\fR"; }
std::string slanted(const std::string& text) { return "\\fI" + roff(text) + "\\fR"; }

std::string joined_roff(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : between) + roff(word);
  return text;
}

std::string value_of(const CommandOption& option) {
  return option.choices.empty() ? slanted(option.value) : joined_roff(option.choices, "|");
}

/// "-X, --request TEXT"
std::string spelling(const CommandOption& option) {
  if (option.names.empty()) return slanted(option.positional);
  std::string text;
  for (const auto& name : option.names) text += (text.empty() ? "" : ", ") + bold(name);
  return option.value.empty() ? text : text + " " + value_of(option);
}

std::string description(const CommandOption& option) {
  std::string text = roff(option.help);
  if (option.names.empty() && !option.choices.empty()) {
    text += ": " + joined_roff(option.choices, ", ");
  }
  if (!option.default_value.empty()) text += "; default " + bold(option.default_value);
  if (!option.variable.empty()) text += "; variable " + bold(option.variable);
  if (option.is_required) text += "; required";
  return text;
}

std::string listed(const std::vector<CommandOption>& options) {
  std::string text;
  for (const auto& option : options) {
    text += ".TP\n" + spelling(option) + "\n" + description(option) + "\n";
  }
  return text;
}

std::string use_of(const CommandTree& command) {
  std::string text = bold(command.path);
  for (const auto& option : command.options) {
    if (option.positional.empty()) continue;
    const auto name = slanted(option.positional);
    text += option.is_required ? " " + name : " [" + name + "]";
  }
  for (const auto& option : command.options) {
    if (!option.names.empty() && option.is_required) text += " " + spelling(option);
  }
  return text + " [" + slanted("OPTION") + "...]";
}

/// What the text of a command's help becomes on its page.
std::string notes_of(const CommandTree& command) {
  std::string codes;
  for (const auto& one : exit_meanings) {
    codes += fmt::format(".TP\n{}\n{}\n", one.code, roff(one.text));
  }
  const std::string exits = ".SH EXIT STATUS\n" + codes;
  std::string others;
  for (const auto& note : command.notes) {
    if (!note.empty() && !note.starts_with(exit_codes)) {
      others += (others.empty() ? ".SH NOTES\n" : ".PP\n") + roff(note) + "\n";
    }
  }
  return exits + others;
}

/// What the variables of the terminal do. The others stand beside their options.
std::string environment() {
  const std::pair<const char*, const char*> variables[] = {
      {"NO_COLOR", "set and not empty: no colours"},
      {"TERM", "dumb or unset: no colours, and no line of progress"},
      {"COLUMNS", "the width of a terminal that does not say it itself; 80 by default"}};
  std::string text = ".SH ENVIRONMENT\n";
  for (const auto& [name, meaning] : variables) {
    text += ".TP\n" + bold(name) + "\n" + roff(meaning) + "\n";
  }
  return text;
}

std::string page_name(const CommandTree& command) { return "idem-" + command.name; }

std::string program_page(const CommandTree& program) {
  std::string text = man_title("idem", 1) + ".SH NAME\nidem \\- " + roff(program.text) +
                     "\n.SH SYNOPSIS\n" + bold("idem") + " " + slanted("COMMAND") + " [" +
                     slanted("OPTION") +
                     "...]\n"
                     ".SH DESCRIPTION\n"
                     "A client sends a request with an " +
                     bold("Idempotency-Key") +
                     ". Idem reserves that key durably before any work starts, runs the work once, "
                     "and stores the answer. Every retry receives the same answer.\n"
                     ".SH COMMANDS\n";
  for (const auto& command : program.commands) {
    text += ".TP\n.BR " + roff(page_name(command)) + " (1)\n" + roff(command.text) + "\n";
  }
  text += ".SH OPTIONS\n" + listed(program.options) + notes_of(program) + environment();
  // Where the Debian package has them.
  text +=
      ".SH FILES\n.TP\n.I /etc/idem/idem.yaml\nthe settings of the service\n"
      ".TP\n.I /var/lib/idem\nthe records of its store, and the operator's token\n"
      ".TP\n.I /usr/share/doc/idem\nREADME.md and docs: getting started, operations, "
      "unknown outcomes, security; docs/protocol.md has the glossary\n";
  return text + ".SH SEE ALSO\n.BR idem.yaml (5)\n";
}

std::string command_page(const CommandTree& command) {
  std::string text = man_title(page_name(command), 1) + ".SH NAME\n" + roff(page_name(command)) +
                     " \\- " + roff(command.text) + "\n.SH SYNOPSIS\n";
  if (command.commands.empty()) text += use_of(command) + "\n";
  for (const auto& verb : command.commands) {
    text += (&verb == &command.commands.front() ? "" : ".br\n") + use_of(verb) + "\n";
  }
  text += ".SH DESCRIPTION\n" + roff(command.text) + ".\n";
  if (!command.commands.empty()) text += ".SH VERBS\n";
  for (const auto& verb : command.commands) {
    text += ".SS " + roff(verb.name) + "\n" + roff(verb.text) + ".\n" + listed(verb.options);
  }
  text += ".SH OPTIONS\n" + listed(command.options) + notes_of(command);
  return text + ".SH SEE ALSO\n.BR idem (1),\n.BR idem.yaml (5)\n";
}

}  // namespace

std::string roff(const std::string& text) {
  std::string out;
  bool is_bold = false;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '"':
        out += "\\(dq";
        break;
      case '`':
        is_bold = !is_bold;
        out += is_bold ? "\\fB" : "\\fR";
        break;
      default:
        out += c;
    }
  }
  // A line that begins with a point is a request.
  if (out.starts_with('.')) out.insert(0, "\\&");
  return out;
}

std::string man_title(const std::string& name, int section) {
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  // A hyphen inside the name of a setting would be copied with it. From groff 1.23 on, sections and
  // paragraphs adjust lines as AD says, whatever .ad said before.
  return fmt::format(".TH {} {} \"\" \"Idem {}\" \"Idem\"\n.nr HY 0\n.nh\n.ds AD l\n.ad l\n",
                     roff(upper), section, IDEM_VERSION);
}

std::vector<ManPage> man_pages(const CommandTree& tree) {
  std::vector<ManPage> pages{{"idem", 1, program_page(tree)}};
  for (const auto& command : tree.commands) {
    pages.push_back({page_name(command), 1, command_page(command)});
  }
  pages.push_back({"idem.yaml", 5, settings_man_page()});
  return pages;
}

std::vector<std::string> man_page_names(const Command& program) {
  std::vector<std::string> names{"idem"};
  for (const auto& command : program.commands()) names.push_back("idem-" + command.name());
  names.emplace_back("idem.yaml");
  return names;
}

}  // namespace idem::cli
