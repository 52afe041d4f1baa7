#include "cli/pages/commands_page.hpp"

#include "cli/pages/exit_codes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace idem::cli {
namespace {

bool has_json(const CommandTree& command) {
  return std::ranges::any_of(command.options, [](const CommandOption& option) {
    return std::ranges::find(option.names, "--json") != option.names.end();
  });
}

std::string as_cell(const std::string& text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

/// A command, or its verbs where it has some.
std::string rows_of(const CommandTree& command, bool parent_has_json) {
  const bool json = has_json(command) || (parent_has_json && command.takes_options_of_parent);
  if (command.commands.empty()) {
    return fmt::format("| `{}` | {} | {} |\n", command.path, as_cell(command.text),
                       json ? "yes" : "");
  }
  std::string rows;
  for (const auto& verb : command.commands) rows += rows_of(verb, json);
  return rows;
}

constexpr const char* output_rules =
    "\n## Output\n\n"
    "**The result is on stdout, all else on stderr**: questions, progress, warnings, errors. An "
    "error has the form\n"
    "`idem COMMAND: what is wrong; what to do`. `idem config check` begins each complaint with its "
    "place instead, as\n"
    "compilers do: `FILE:LINE:COLUMN:`, a flag or a variable.\n\n"
    "**`--json`** makes the result on stdout one JSON text; `idem audit export` writes a line of "
    "JSON for each line. Exit\n"
    "code and stderr stay the same: without a result, stdout is empty. What `idem config check` "
    "finds is its result:\n"
    "`ok`, `role`, and lists `complaints` and `warnings` of `place` and `message`. A command of "
    "the "
    "admin API prints its\n"
    "answer ([openapi.yaml](openapi.yaml)). Commands without `--json` run for long, or print a "
    "schema, a page or a script.\n\n"
    "**Tables fit the terminal.** Where one is too wide, columns of free text (scope, operation, "
    "reason and the like) are\n"
    "shortened, the widest first and none below 12 columns: `ticket 4…as repaired`. Where that "
    "does "
    "not suffice, each row\n"
    "becomes a block with a line for each value, whole, without those that are `-`. Refs, ids, "
    "states and times are never\n"
    "shortened. The width is the terminal's, or else that of `COLUMNS`, or else 80. In a pipe or a "
    "file nothing is\n"
    "shortened.\n\n"
    "**Colour** is only on a terminal, and never the only sign. `NO_COLOR`, set and not empty, "
    "switches it off; so does\n"
    "`TERM=dumb`.\n\n"
    "**Progress** of long work is one line on stderr, on a terminal only, written again four times "
    "a second and erased at\n"
    "the end. Elsewhere a followed job, `idem reconcile` and `idem store rekey` write a line from "
    "time to time.\n\n"
    "Text of clients is shown without control characters and without marks that change the order "
    "of "
    "a line: each is `?`.\n";

}  // namespace

std::string commands_page(const CommandTree& tree) {
  std::string page =
      "# Commands\n\n"
      "This page is for who runs `idem` by hand or from a program: what each command is for, what "
      "it prints and how it ends.\n"
      "`idem man --markdown` prints this page from the program's own table of options; a test "
      "compares the two. Options:\n"
      "`idem COMMAND --help`, or idem-COMMAND(1).\n\n"
      "| command | for | `--json` |\n|---|---|---|\n";
  for (const auto& command : tree.commands) page += rows_of(command, false);
  page += output_rules;
  page += "\n## Exit codes\n\n| exit code of any command | means |\n|---|---|\n";
  for (const auto& one : exit_meanings) page += fmt::format("| {} | {} |\n", one.code, one.text);
  return page;
}

}  // namespace idem::cli
