#include "cli/command_line/command.hpp"

#include "cli/command_line/words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace idem::cli {
namespace {

std::vector<std::string> split_choices(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const auto to = std::min(text.find(',', from), text.size());
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
    read.choices = split_choices(std::string_view(type).substr(open + 2, close - open - 2));
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

/// No exception of the parser leaves this file.
template <class Parse>
std::expected<Asked, std::string> parsed_by(const CLI::App& app, const Parse& parse) {
  try {
    parse();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return std::unexpected(std::string(error.what()));
    app.exit(error);
    return Asked::help;
  }
  return Asked::command;
}

}  // namespace

Option Option::required() const { return Option(option_->required()); }

Option Option::file() const { return Option(option_->type_name("FILE")); }

Option Option::choices(const std::vector<std::string>& values) const {
  return Option(option_->type_name("TEXT:{" + joined(values, ",") + "}"));
}

Option Option::one_of(const std::vector<std::string>& values) const {
  return Option(option_->check(CLI::IsMember(values)));
}

Option Option::valid(std::string (*why_not)(const std::string& value)) const {
  return Option(option_->check(why_not));
}

Option Option::between(int least, int most) const {
  return Option(option_->check(CLI::Range(least, most)));
}

Option Option::variable(const std::string& name) const { return Option(option_->envname(name)); }

Option Option::show_default() const { return Option(option_->capture_default_str()); }

Option Option::show_default(const std::string& text) const {
  return Option(option_->default_str(text));
}

Option Option::separated_by(char separator) const { return Option(option_->delimiter(separator)); }

Option Option::once() const {
  return Option(option_->multi_option_policy(CLI::MultiOptionPolicy::Throw));
}

Option Option::one_value_each() const { return Option(option_->allow_extra_args(false)); }

Option Option::values(int least, int most) const { return Option(option_->expected(least, most)); }

Option Option::describe(const std::string& help) const {
  return Option(option_->description(help));
}

Command Command::add_command(const std::string& name, const std::string& text) const {
  return Command(app_->add_subcommand(name, text));
}

Option Command::add_option(const std::string& names, std::string& value,
                           const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, std::optional<std::string>& value,
                           const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, std::vector<std::string>& value,
                           const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, int& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, std::uint64_t& value,
                           const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, double& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, std::optional<unsigned>& value,
                           const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, std::optional<std::uint64_t>& value,
                           const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, std::optional<double>& value,
                           const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

Option Command::add_option(const std::string& names, const std::string& help) const {
  return Option(app_->add_option(names, CLI::callback_t{}, help)->type_name("TEXT"));
}

Option Command::add_flag(const std::string& names, bool& value, const std::string& help) const {
  return Option(app_->add_flag(names, value, help));
}

Option Command::add_flag(const std::string& names, const std::string& help) const {
  return Option(app_->add_flag(names, help));
}

Option Command::option(const std::string& name) const { return Option(app_->get_option(name)); }

bool Command::has_option(const std::string& name) const {
  return app_->get_option_no_throw(name) != nullptr;
}

void Command::set_notes(const std::string& notes) const { app_->footer(notes); }

void Command::require_command() const { app_->require_subcommand(1); }

void Command::take_options_of_parent() const { app_->fallthrough(); }

std::string Command::name() const { return app_->get_name(); }

std::string Command::text() const { return app_->get_description(); }

std::string Command::notes() const { return app_->get_footer(); }

bool Command::requires_command() const { return app_->get_require_subcommand_min() > 0; }

bool Command::takes_options_of_parent() const { return app_->get_fallthrough(); }

std::optional<Command> Command::parent() const {
  CLI::App* const parent = app_->get_parent();
  return parent == nullptr ? std::nullopt : std::optional(Command(parent));
}

std::vector<CommandOption> Command::options() const {
  std::vector<CommandOption> all;
  for (const auto* const option : app_->get_options()) all.push_back(read_option(*option));
  return all;
}

std::vector<Command> Command::commands() const {
  std::vector<Command> all;
  for (auto* const one : app_->get_subcommands([](CLI::App*) { return true; })) {
    all.push_back(Command(one));
  }
  return all;
}

bool Command::parsed() const { return app_->parsed(); }

std::vector<Command> Command::given_commands() const {
  std::vector<Command> given;
  for (auto* const one : app_->get_subcommands()) given.push_back(Command(one));
  return given;
}

std::vector<std::string> Command::values_of(const std::string& name) const {
  return app_->get_option(name)->results();
}

std::vector<std::string> Command::words_left() const { return app_->remaining(); }

std::vector<std::string> Command::all_words_left() const { return app_->remaining(true); }

CommandLine::CommandLine(const std::string& text, const std::string& name)
    : CommandLine(std::make_unique<CLI::App>(text, name)) {}

CommandLine::CommandLine(std::unique_ptr<CLI::App> app)
    : Command(app.get()), owned_(std::move(app)) {}

CommandLine::~CommandLine() = default;

void CommandLine::set_version(const std::string& text) const {
  app_->set_version_flag("--version", text, "Print the version");
}

std::expected<Asked, std::string> CommandLine::parse(int argc, const char* const* argv) {
  return parsed_by(*app_, [&] { app_->parse(argc, argv); });
}

std::expected<Asked, std::string> CommandLine::parse(std::vector<std::string> words) {
  std::ranges::reverse(words);  // CLI11 takes the last one first.
  return parsed_by(*app_, [&] { app_->parse(words); });
}

}  // namespace idem::cli
