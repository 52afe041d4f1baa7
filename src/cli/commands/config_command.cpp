#include "cli/commands/config_command.hpp"

#include "cli/commands/check_report.hpp"
#include "cli/exit_code.hpp"
#include "cli/settings/environment.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace idem::cli {
namespace {

/// What was given and nobody reads is often the reason of a complaint.
int refuse(const std::vector<std::string>& complaints) {
  for (const auto& warning : SettingsSource::variables_without_effect()) {
    std::fprintf(stderr, "%s\n", as_warning(warning).c_str());
  }
  for (const auto& line : complaints) std::fprintf(stderr, "%s\n", line.c_str());
  return usage;
}

/// One entry of a list of maps; its first line has the dash.
template <class Given>
std::string print_item(Given given) {
  constexpr std::size_t indent = 4;
  auto text = config::to_yaml(settings_of(given), indent);
  if (text.size() > indent) text[indent - 2] = '-';
  return text;
}

}  // namespace

std::string print_settings(GatewayFlags flags, Purpose purpose) {
  auto table = settings_of(flags);
  if (purpose == Purpose::worker) {
    std::erase_if(table, config::is_gateways);
  }
  std::string text = config::to_yaml(table, 0, config::Unset::shown);
  Complaints ignored;
  const auto routes = read_routes(flags.routes, ignored);
  if (!routes.empty()) text += "routes:\n";
  for (const auto& route : routes) text += print_item(route);
  const auto destinations = read_destinations(flags.destinations, ignored);
  if (!destinations.empty()) text += "destinations:\n";
  for (const auto& destination : destinations) text += print_item(destination);
  const auto providers = read_providers(flags.providers, ignored);
  if (!providers.empty()) text += "providers:\n";
  for (const auto& provider : providers) text += print_item(provider);
  return text;
}

std::string print_settings_as_json(GatewayFlags flags, Purpose purpose) {
  auto table = settings_of(flags);
  if (purpose == Purpose::worker) std::erase_if(table, config::is_gateways);
  std::string text = config::to_json(table);
  Complaints ignored;
  const auto add = [&](const char* name, auto items) {
    std::string all;
    for (auto& item : items) {
      all += (all.empty() ? "{" : ",{") + config::to_json(settings_of(item)) + "}";
    }
    if (!all.empty()) text += fmt::format(",\"{}\":[{}]", name, all);
  };
  add("routes", read_routes(flags.routes, ignored));
  add("destinations", read_destinations(flags.destinations, ignored));
  add("providers", read_providers(flags.providers, ignored));
  return "{" + text + "}\n";
}

std::string settings_schema() {
  GatewayFlags flags;
  RouteGiven route;
  DestinationGiven destination;
  ProviderGiven provider;
  const config::ItemSchemas items{{"routes", config::to_schema(settings_of(route), {})},
                                  {"destinations", config::to_schema(settings_of(destination), {})},
                                  {"providers", config::to_schema(settings_of(provider), {})}};
  return R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)"
         R"("title":"Configuration of idem gateway and idem worker",)" +
         config::to_schema(settings_of(flags), items) + "}\n";
}

std::string settings_page() {
  GatewayFlags flags;
  RouteGiven route;
  DestinationGiven destination;
  ProviderGiven provider;
  const auto section = [](std::string_view title, std::string_view text, const auto& table) {
    return fmt::format("\n## {}\n\n{}\n\n{}", title, text, config::to_markdown(table, variable_of));
  };
  std::string page =
      "# Configuration\n\n"
      "`idem config docs` prints this page from the program's table of settings; a test compares "
      "the two.\n\n"
      "A setting is given in the YAML file (`--config FILE`), in an environment variable or in a "
      "flag. A flag wins over a\n"
      "variable, a variable over the file, the file over the default. `idem config check` says "
      "what "
      "is wrong with a\n"
      "configuration, `idem config print` prints the effective settings, and `idem config schema` "
      "prints a JSON Schema for\n"
      "editors. `a.b` in the first column is the member `b` of the map `a`. In the column "
      "\"reload\", "
      "`yes` says that the\n"
      "gateway applies a change on SIGHUP; the others need a restart.\n\n"
      "Durations are whole numbers with `ms`, `s`, `m`, `h` or `d`; sizes with `B`, `KiB`, `MiB` "
      "or "
      "`GiB`. A relative path in a\n"
      "file is relative to that file.\n";
  page += section("Gateway and worker", "The worker refuses the settings that only a gateway has.",
                  settings_of(flags));
  page += section("`routes`",
                  "One map for each route. The first route whose `match` fits a request applies; "
                  "what it leaves out comes from\n`defaults` and `limits`. The gateway applies "
                  "changes on SIGHUP.",
                  settings_of(route));
  page += section("`destinations`", "One map for each receiver of outbox messages.",
                  settings_of(destination));
  page += section("`providers`", "One map for each provider that knows the outcome of an attempt.",
                  settings_of(provider));
  return page;
}

ConfigCommand::ConfigCommand(const Command& program)
    : command_(program.add_command(
          "config", "Check, print or describe a configuration; show and apply its changes")),
      check_(command_.add_command("check", "Report what is wrong with a configuration")),
      print_(command_.add_command("print", "Print the effective settings as YAML, or as JSON")),
      schema_(command_.add_command("schema", "Print the JSON Schema of the file")),
      docs_(command_.add_command("docs", "Print a page about all settings, in Markdown")),
      checked_(check_),
      printed_(print_),
      changes_(command_),
      reload_(command_) {
  command_.require_command();
  check_.add_flag("--json", json_, json_help);
  check_.add_flag("--ask-store", ask_store_,
                  "also ask the store's server whether it accepts the settings; the store must be "
                  "there, and nothing in it changes. The file of a SQLite store is looked at in "
                  "any case");
  check_
      .add_option(
          "--role", role_,
          "check them as settings of a gateway or of a worker; by default a worker's if none of "
          "them is for a gateway only")
      .one_of({"gateway", "worker"});
  print_.add_flag("--json", print_json_, json_help);
  print_
      .add_option("--role", role_, "print them as settings of a gateway or of a worker; see check")
      .one_of({"gateway", "worker"});
}

bool ConfigCommand::parsed() const { return command_.parsed(); }

int ConfigCommand::run() {
  if (changes_.parsed()) return changes_.run();
  if (reload_.parsed()) return reload_.run();
  if (schema_.parsed()) {
    std::fputs(settings_schema().c_str(), stdout);
    return done;
  }
  if (docs_.parsed()) {
    std::fputs(settings_page().c_str(), stdout);
    return done;
  }
  return check_.parsed() ? run_check() : run_print();
}

int ConfigCommand::run_check() const {
  if (json_) return print_report_as_json(checked_, role_, ask_store_);
  if (role_ != "guessed") {
    return print_report(checked_, role_ == "worker" ? Purpose::worker : Purpose::gateway,
                        ask_store_);
  }
  const int code = print_report(checked_, checked_.guessed_purpose(), ask_store_);
  if (code != done && checked_.guessed_purpose() == Purpose::gateway) {
    std::fputs("checked as settings of idem gateway; --role worker checks a worker's\n", stderr);
  }
  return code;
}

int ConfigCommand::run_print() const {
  const auto purpose = role_ == "worker"    ? Purpose::worker
                       : role_ == "gateway" ? Purpose::gateway
                                            : printed_.guessed_purpose();
  const auto settings = printed_.read_for(purpose);
  if (!settings) return refuse(settings.error());
  std::fputs((print_json_ ? print_settings_as_json(settings->given, purpose)
                          : print_settings(settings->given, purpose))
                 .c_str(),
             stdout);
  return done;
}

}  // namespace idem::cli
