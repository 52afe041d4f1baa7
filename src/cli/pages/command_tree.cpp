#include "cli/pages/command_tree.hpp"

#include <string_view>

namespace idem::cli {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const auto to = std::min(text.find(separator, from), text.size());
    parts.emplace_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

/// CLI11 writes a type as "TEXT", "TEXT:{a,b}", or "INT:INT in [200 - 599]".
void read_type(const CLI::Option& option, CommandOption& read) {
  if (option.get_items_expected_max() == 0) return;
  const std::string type = option.get_type_name();
  read.value = type.substr(0, type.find(':'));
  if (read.value.empty()) read.value = "TEXT";
  read.is_file = read.value == "FILE";
  const auto open = type.find(":{");
  const auto close = type.find('}', open);
  if (open != type.npos && close != type.npos) {
    read.choices = split(std::string_view(type).substr(open + 2, close - open - 2), ',');
  }
  const auto range = type.find(" in [");
  if (range != type.npos) {
    const auto end = type.find(']', range);
    auto text = type.substr(range + 5, end - range - 5);
    const auto dash = text.find(" - ");
    if (dash != text.npos) text.replace(dash, 3, " to ");
    read.help += ", " + text;
  }
}

CommandOption read_option(const CLI::Option& option) {
  CommandOption read;
  for (const auto& name : option.get_snames()) read.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) read.names.push_back("--" + name);
  if (option.get_positional()) read.positional = option.get_name(true);
  read.help = option.get_description();
  read.is_required = option.get_required();
  read.repeats = option.get_items_expected_max() > 1;
  read.default_value = option.get_default_str();
  read.variable = option.get_envname();
  read_type(option, read);
  return read;
}

CommandTree read_command(const CLI::App& app, const std::string& parent) {
  CommandTree tree;
  tree.name = app.get_name();
  tree.path = parent.empty() ? tree.name : parent + " " + tree.name;
  tree.text = app.get_description();
  tree.takes_options_of_parent = app.get_fallthrough();
  if (!app.get_footer().empty()) tree.notes = split(app.get_footer(), '\n');
  for (const auto* const option : app.get_options()) tree.options.push_back(read_option(*option));
  for (const auto* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    tree.commands.push_back(read_command(*command, tree.path));
  }
  return tree;
}

}  // namespace

CommandTree read_tree(const CLI::App& app) { return read_command(app, {}); }

std::string brief(const std::string& help) {
  constexpr std::size_t bytes_max = 72;
  std::string text = help.substr(0, std::min(help.find("; "), help.find(" (IDEM_")));
  if (text.size() <= bytes_max) return text;
  return text.substr(0, text.rfind(' ', bytes_max)) + " ...";
}

}  // namespace idem::cli
