#pragma once

#include "cli/pages/command_tree.hpp"

#include <string>
#include <vector>

namespace idem::cli {

/// A page of the manual, in the language of man(7).
struct ManPage {
  std::string name{};  ///< "idem-keys"
  int section = 1;
  std::string text{};
};

/// The pages of `tree`: one about the program, one about each of its commands, and idem.yaml(5)
/// from the table of settings.
std::vector<ManPage> man_pages(const CommandTree& tree);

/// Their names, in this order.
std::vector<std::string> man_page_names(const Command& program);

/// idem.yaml(5).
std::string settings_man_page();

/// `text` for man(7): escaped; what stands between backticks is bold.
std::string roff(const std::string& text);

/// The first line of a page.
std::string man_title(const std::string& name, int section);

}  // namespace idem::cli
