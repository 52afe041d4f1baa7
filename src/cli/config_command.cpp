#include "cli/config_command.hpp"

#include "cli/config_check.hpp"

#include <cstdio>

namespace idem::cli {
namespace {

int print_complaints(const std::vector<std::string>& lines) {
  for (const auto& line : lines) std::fprintf(stderr, "%s\n", line.c_str());
  return usage;
}

int check(const ReadSettings& settings) {
  Complaints wrong;
  check_named_files(settings, wrong);
  if (!wrong.empty()) return print_complaints(wrong.lines());
  Complaints warnings;
  warn_of_laxer_routes(settings, warnings);
  print_complaints(warnings.lines());
  std::fputs("ok\n", stdout);
  return done;
}

/// One entry of a list of maps: an item whose first line has the dash.
template <class Given>
std::string print_item(Given given) {
  constexpr std::size_t indent = 4;
  auto text = config::to_yaml(settings_of(given), indent);
  if (text.size() > indent) text[indent - 2] = '-';
  return text;
}

}  // namespace

std::string print_settings(GatewayFlags flags) {
  std::string text = config::to_yaml(settings_of(flags), 0);
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

std::string settings_schema() {
  GatewayFlags flags;
  RouteGiven route;
  DestinationGiven destination;
  ProviderGiven provider;
  const config::ItemSchemas items{{"routes", config::to_schema(settings_of(route), {})},
                                  {"destinations", config::to_schema(settings_of(destination), {})},
                                  {"providers", config::to_schema(settings_of(provider), {})}};
  return R"({"$schema":"https://json-schema.org/draft/2020-12/schema",)"
         R"("title":"Configuration of idem gateway",)" +
         config::to_schema(settings_of(flags), items) + "}\n";
}

ConfigCommand::ConfigCommand(CLI::App& app)
    : command_(*app.add_subcommand("config", "Check, print or describe a configuration")),
      check_(*command_.add_subcommand("check", "Say what is wrong with a configuration")),
      print_(*command_.add_subcommand("print", "Print the effective settings as YAML")),
      schema_(*command_.add_subcommand("schema", "Print the JSON Schema of the file")),
      checked_(check_),
      printed_(print_) {
  command_.require_subcommand(1);
}

bool ConfigCommand::parsed() const { return command_.parsed(); }

int ConfigCommand::run() const {
  if (schema_.parsed()) {
    std::fputs(settings_schema().c_str(), stdout);
    return done;
  }
  const auto settings = (check_.parsed() ? checked_ : printed_).read();
  if (!settings) return print_complaints(settings.error());
  if (check_.parsed()) return check(*settings);
  std::fputs(print_settings(settings->given).c_str(), stdout);
  return done;
}

}  // namespace idem::cli
