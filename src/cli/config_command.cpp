#include "cli/config_command.hpp"

#include "cli/config_check.hpp"
#include "cli/roles.hpp"

#include <cstdio>

namespace idem::cli {
namespace {

int print_complaints(const std::vector<std::string>& lines) {
  for (const auto& line : lines) std::fprintf(stderr, "%s\n", line.c_str());
  return usage;
}

int check(const SettingsSource& source, Purpose purpose) {
  const auto settings = source.read_for(purpose);
  if (!settings) return print_complaints(settings.error());
  Complaints wrong;
  check_named_files(*settings, wrong);
  if (!wrong.empty()) return print_complaints(wrong.lines());
  for (const auto& warning : settings->warnings) {
    const auto place = warning.find(": ");
    std::fprintf(stderr, "%s: warning%s\n", warning.substr(0, place).c_str(),
                 warning.substr(place).c_str());
  }
  Complaints warnings;
  warn_of_laxer_routes(*settings, warnings);
  print_complaints(warnings.lines());
  std::printf("ok\n%s", purpose == Purpose::worker
                            ? "as settings of idem worker (--role gateway: as a gateway's)\n"
                            : "");
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

std::string print_settings(GatewayFlags flags, Purpose purpose) {
  auto table = settings_of(flags);
  if (purpose == Purpose::worker) {
    std::erase_if(table, [](const auto& setting) { return is_gateways_alone(setting.path); });
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

ConfigCommand::ConfigCommand(CLI::App& app)
    : command_(*app.add_subcommand("config", "Check, print or describe a configuration")),
      check_(*command_.add_subcommand("check", "Say what is wrong with a configuration")),
      print_(*command_.add_subcommand("print", "Print the effective settings as YAML")),
      schema_(*command_.add_subcommand("schema", "Print the JSON Schema of the file")),
      checked_(check_),
      printed_(print_) {
  command_.require_subcommand(1);
  check_
      .add_option("--role", role_,
                  "whose settings they are; by default a worker's, where none of them is for a "
                  "gateway alone")
      ->check(CLI::IsMember({"gateway", "worker"}));
}

bool ConfigCommand::parsed() const { return command_.parsed(); }

int ConfigCommand::run() const {
  if (schema_.parsed()) {
    std::fputs(settings_schema().c_str(), stdout);
    return done;
  }
  if (check_.parsed()) {
    if (role_ != "guessed") {
      return check(checked_, role_ == "worker" ? Purpose::worker : Purpose::gateway);
    }
    const int code = check(checked_, checked_.guessed_purpose());
    if (code != done && checked_.guessed_purpose() == Purpose::gateway) {
      std::fputs(
          "these were checked as settings of idem gateway; --role worker checks a worker's\n",
          stderr);
    }
    return code;
  }
  const auto purpose = printed_.guessed_purpose();
  const auto settings = printed_.read_for(purpose);
  if (!settings) return print_complaints(settings.error());
  std::fputs(print_settings(settings->given, purpose).c_str(), stdout);
  return done;
}

}  // namespace idem::cli
