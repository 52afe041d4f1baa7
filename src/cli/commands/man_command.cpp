#include "cli/commands/man_command.hpp"

#include "cli/command_line/words.hpp"
#include "cli/exit_code.hpp"
#include "cli/pages/commands_page.hpp"
#include "cli/pages/man_page.hpp"
#include "cli/terminal/messages.hpp"
#include "config/words.hpp"

#include <cstdio>
#include <fstream>

namespace idem::cli {

ManCommand::ManCommand(const Command& program)
    : program_(program),
      command_(program.add_command("man", "Print a page of the manual, for man -l -")) {
  command_.add_option("PAGE", page_, "the page").choices(man_page_names(program_));
  command_.add_option("--into", folder_, "write all pages into this folder").file();
  command_.add_flag("--markdown", markdown_,
                    "print the page about all commands, in Markdown, instead");
}

bool ManCommand::parsed() const { return command_.parsed(); }

int ManCommand::run() const {
  if (!folder_.empty()) return write_all();
  if (markdown_) {
    std::fputs(commands_page(read_tree(program_)).c_str(), stdout);
    return done;
  }
  for (const auto& page : man_pages(read_tree(program_))) {
    // Of a command by its own name, too: "keys" for "idem-keys".
    if (page.name != page_ && page.name != "idem-" + page_) continue;
    std::fputs(page.text.c_str(), stdout);
    return done;
  }
  return say_error("man",
                   "there is no page " + config::shown(page_) + "; there are " +
                       joined(man_page_names(program_), ", "),
                   usage);
}

int ManCommand::write_all() const {
  for (const auto& page : man_pages(read_tree(program_))) {
    const auto path = folder_ + "/" + page.name + "." + std::to_string(page.section);
    std::ofstream file(path, std::ios::binary);
    file << page.text;
    file.close();
    if (!file) {
      return say_error(
          "man", path + " cannot be written; name a folder that is there and that you may write to",
          failed);
    }
  }
  return done;
}

}  // namespace idem::cli
