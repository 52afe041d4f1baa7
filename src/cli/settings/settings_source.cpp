#include "cli/settings/settings_source.hpp"

#include "cli/commands.hpp"
#include "cli/settings/addresses.hpp"
#include "cli/settings/environment.hpp"
#include "cli/settings/parse.hpp"
#include "cli/settings/paths.hpp"
#include "cli/terminal/messages.hpp"
#include "config/words.hpp"

#include <idem/open_store.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>

namespace idem::cli {
namespace {

using config::Setting;
using config::Shape;

std::string default_of(const Setting& setting) {
  const auto* given = std::get_if<Given*>(&setting.slot);
  return given == nullptr ? std::string{} : (*given)->text;
}

std::string help_of(const Setting& setting) {
  std::string help(setting.help);
  if (std::holds_alternative<GivenList*>(setting.slot)) help += "; repeatable";
  return help + " (" + variable_of(setting.flag) + ", " + std::string(setting.path) + ")";
}

/// A boolean with the default false is a flag without a value.
bool is_switch(const Setting& setting) {
  return setting.shape.kind == Shape::Kind::truth && default_of(setting) == "false";
}

void declare(const Command& command, const Setting& setting) {
  const std::string flag(setting.flag);
  const std::string help = help_of(setting);
  if (is_switch(setting)) {
    command.add_flag(flag, help).once();
    return;
  }
  const Option option = command.add_option(flag, help);
  const auto kind = setting.shape.kind;
  if (kind == Shape::Kind::path || kind == Shape::Kind::paths) option.file();
  if (kind == Shape::Kind::truth) option.choices({"true", "false"});
  if (kind == Shape::Kind::word) {
    const auto words = config::split(setting.shape.words, '|');
    option.choices({words.begin(), words.end()});
  }
  if (std::holds_alternative<GivenList*>(setting.slot)) {
    option.values(1, static_cast<int>(limits::config_entries_max)).one_value_each();
    return;
  }
  option.once();
  const auto text = default_of(setting);
  if (!text.empty()) option.show_default(text);
}

void assign(const Setting& setting, const std::vector<std::string>& values,
            const std::string& source) {
  const config::Place place{source};
  if (auto* const* given = std::get_if<Given*>(&setting.slot)) {
    **given = {values.front(), place, true};
  } else if (auto* const* list = std::get_if<GivenList*>(&setting.slot)) {
    **list = {.place = place, .given = true};
    for (const auto& value : values) (*list)->items.push_back({value, place, true});
  }
}

/// One value, or the items of a list.
std::vector<std::string> values_in(const Setting& setting, const std::string& text) {
  if (!std::holds_alternative<GivenList*>(setting.slot)) return {text};
  const auto parts = config::split(text, ',');
  return {parts.begin(), parts.end()};
}

void name_places(const std::vector<Setting>& table) {
  for (const auto& setting : table) {
    const config::Place place{std::string(setting.flag)};
    if (auto* const* given = std::get_if<Given*>(&setting.slot)) (*given)->place = place;
    if (auto* const* list = std::get_if<GivenList*>(&setting.slot)) (*list)->place = place;
  }
}

void parse_environment(const Setting& setting, Complaints& complaints) {
  const auto name = variable_of(setting.flag);
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) return;
  if (*value == '\0') {
    // A number or a choice then keeps its default; an empty text could switch off a protection.
    const auto kind = setting.shape.kind;
    if (config::is_text(kind) || config::is_texts(kind)) {
      complaints.add({name}, "is empty; write a value, or unset the variable");
    }
    return;
  }
  assign(setting, values_in(setting, value), name);
  config::check(setting, complaints);
}

/// Reads at most one byte more than the limit. None: a directory, or a file that cannot be read.
std::optional<std::string> read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(limits::config_file_bytes_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.fail() && !file.eof())) return std::nullopt;
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

}  // namespace

SettingsSource::SettingsSource(const Command& command, Purpose purpose)
    : command_(command), purpose_(purpose) {
  command.add_option("--config", file_, "YAML file with settings").file().variable("IDEM_CONFIG");
  declare_flags();
}

SettingsSource::SettingsSource(const Command& command, bool (*declared)(const Setting&))
    : command_(command), purpose_(Purpose::gateway), declared_(declared) {
  declare_flags();
}

void SettingsSource::declare_flags() {
  GatewayFlags defaults;
  for (const auto& setting : settings_of(defaults)) {
    if (!setting.flag.empty() && declares(setting)) declare(command_, setting);
  }
}

bool SettingsSource::declares(const Setting& setting) const {
  if (declared_ != nullptr) return declared_(setting);
  return purpose_ == Purpose::gateway || !config::is_gateways(setting);
}

bool SettingsSource::parse_file(std::vector<Setting>& table, Complaints& complaints) const {
  if (file_.empty()) return true;
  const auto text = read_whole(file_);
  if (!text) {
    complaints.add({"--config"}, config::shown(file_) +
                                     " cannot be read; write the path of a file that this user may "
                                     "read");
    return false;
  }
  const auto document = config::read_yaml(*text, file_, complaints);
  if (!document) return false;
  config::read_map(*document, table, complaints);
  return document->kind == config::Node::Kind::map;
}

std::optional<GatewayFlags> SettingsSource::gather_as_given(Complaints& complaints) const {
  GatewayFlags flags;
  auto table = settings_of(flags);
  name_places(table);
  if (!parse_file(table, complaints)) return std::nullopt;
  for (const auto& setting : table) {
    if (setting.flag.empty() || !declares(setting)) continue;
    const std::string flag(setting.flag);
    if (const auto values = command_.values_of(flag); values.empty()) {
      parse_environment(setting, complaints);
    } else {
      assign(setting, values, flag);
      config::check(setting, complaints);
    }
  }
  return flags;
}

std::optional<GatewayFlags> SettingsSource::gather(Complaints& complaints) const {
  auto flags = gather_as_given(complaints);
  if (!flags) return std::nullopt;
  // Defaults are relative to the file too: the same file must not find another store when the
  // process starts in another directory.
  flags->folder = file_.empty() ? std::string() : folder_of(file_);
  make_paths_absolute(settings_of(*flags), flags->folder);
  auto& mark = flags->rest.one("dispatch_mark");
  if (!mark.given && marks_dispatch_apart(flags->store.text)) mark.text = "separate";
  return flags;
}

namespace {

/// Refuses settings without effect on a worker. Variables give only a warning, because several
/// commands may share them.
void refuse_gateways_settings(GatewayFlags& flags, Complaints& complaints) {
  for (const auto& setting : settings_of(flags)) {
    const auto* const place = config::given_at(setting);
    if (place == nullptr || is_variable(*place) || !config::is_gateways(setting)) continue;
    complaints.add(*place, std::string(setting.path) +
                               " is a setting of idem gateway and has no effect on a worker; "
                               "leave it out of the worker's settings");
  }
}

std::vector<std::string> warnings_of(GatewayFlags& given, const GatewayOptions& options,
                                     Purpose purpose) {
  const auto table = settings_of(given);
  auto all = unknown_variables(table);
  for (const auto& setting : table) {
    if (purpose == Purpose::gateway || setting.flag.empty() || !config::is_gateways(setting)) {
      continue;
    }
    const auto name = variable_of(setting.flag);
    if (std::getenv(name.c_str()) == nullptr) continue;
    all.push_back(name + ": is a setting of idem gateway and has no effect on a worker");
  }
  if (!options.admin.empty() && !is_loopback(options.admin) &&
      options.admin_tls.certificate.empty()) {
    all.push_back(given.admin.place.text() + ": " + config::shown(options.admin) +
                  " can be reached from other machines and has no TLS: tokens and answers cross "
                  "the network in clear; write admin_tls (--admin-tls-cert, --admin-tls-key), or "
                  "127.0.0.1:PORT and use a tunnel");
  }
  return all;
}

}  // namespace

std::expected<ReadSettings, std::vector<std::string>> SettingsSource::read_for(
    Purpose purpose) const {
  Complaints complaints;
  auto given = gather(complaints);
  if (given && purpose == Purpose::worker) refuse_gateways_settings(*given, complaints);
  auto options = given ? build_options(*given, purpose, complaints) : std::nullopt;
  if (!options) return std::unexpected(complaints.lines());
  auto warnings = warnings_of(*given, *options, purpose);
  return ReadSettings{std::move(*given), std::move(*options), std::move(warnings)};
}

Purpose SettingsSource::guessed_purpose() const {
  Complaints ignored;
  auto given = gather(ignored);
  if (!given) return Purpose::gateway;
  const bool does_a_workers_work = !given->destinations.empty() || !given->providers.empty();
  bool has_settings = does_a_workers_work;
  for (const auto& setting : settings_of(*given)) {
    const auto* const place = config::given_at(setting);
    if (place == nullptr) continue;
    const bool is_gateways = config::is_gateways(setting) || setting.path == "scope.from";
    // A worker may share its variables with a gateway.
    if (is_gateways && !(does_a_workers_work && is_variable(*place))) return Purpose::gateway;
    has_settings = true;
  }
  Complaints of_routes;
  check_worker_routes(read_routes(given->routes, ignored), of_routes);
  return has_settings && of_routes.empty() ? Purpose::worker : Purpose::gateway;
}

std::vector<std::string> SettingsSource::variables_without_effect() {
  GatewayFlags defaults;
  return unknown_variables(settings_of(defaults));
}

int SettingsSource::refuse(const char* command, const std::vector<std::string>& complaints) const {
  Complaints ignored;
  const auto given = gather(ignored);
  const auto warnings = variables_without_effect();
  if (given && given->log_format.text == "json") {
    const ProcessLog process_log(given->log_format.text);
    const auto log = process_log.sink();
    for (const auto& line : warnings) {
      log(LogLevel::warning, "settings_warning", {{"reason", line}});
    }
    for (const auto& line : complaints) {
      log(LogLevel::error, "settings_refused", {{"reason", line}});
    }
    return usage;
  }
  for (const auto& line : warnings) say_warning(command, as_warning(line));
  for (const auto& line : complaints) say_error(command, line, usage);
  return usage;
}

void give(GatewayFlags& flags, std::string_view flag, const std::string& text) {
  for (const auto& setting : settings_of(flags)) {
    if (setting.flag == flag) assign(setting, values_in(setting, text), std::string(flag));
  }
}

}  // namespace idem::cli
