#include "cli/settings/config_check.hpp"

#include "cli/settings/paths.hpp"
#include "config/words.hpp"
#include "store/file_access.hpp"
#include "store/known_kinds.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace idem::cli {
namespace {

using config::shown;
using gateway::Route;

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path.empty() ? "." : path, ignored);
}

/// "\"PATH\" is no directory; make it". Empty: it is one.
std::string why_no_folder(const std::filesystem::path& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path.empty() ? "." : path, code)) return {};
  const std::string text = path.string();
  if (const auto why = why_dangling(text)) return shown(text) + ' ' + *why;
  // Of a right, for example: it may be one.
  if (code && code != std::errc::no_such_file_or_directory && code != std::errc::not_a_directory) {
    return with_advice(shown(text) + " cannot be looked at: " + code.message(), text);
  }
  return shown(text) + " is no directory; make it or write another path";
}

void check_store_file(const Given& store, Complaints& complaints) {
  const auto path = path_in(store.text);
  if (!path) return;
  const std::filesystem::path file(*path);
  if (auto why = why_no_folder(file.parent_path()); !why.empty()) {
    complaints.add(store.place, why + "; no store can be made there");
  } else if (!known_kind_of(store.text)->is_directory && is_folder(file)) {
    complaints.add(store.place, shown(file.string()) + " is a directory; write a file's path");
  }
}

bool can_be_read(const Given& file, Complaints& complaints) {
  if (file.text.empty()) return true;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file.text, ignored) && std::ifstream(file.text)) return true;
  complaints.add(file.place, shown(file.text) +
                                 " cannot be read; write the path of a file that "
                                 "this user may read");
  return false;
}

/// Whether a request that needs a key by `route` could reach `later`, which matches more paths, in
/// another spelling.
bool matches_other_spellings(const Route& later, const Route& route) {
  const auto meets = [&](const std::string& method) {
    const bool there =
        later.methods.empty() || std::ranges::find(later.methods, method) != later.methods.end();
    const bool here =
        route.methods.empty() || std::ranges::find(route.methods, method) != route.methods.end();
    return there && here && route.needs_key(method);
  };
  return (meets("POST") || meets("PATCH")) && later.path.covers(route.path) &&
         !route.path.covers(later.path);
}

}  // namespace

void check_named_files(const ReadSettings& read, Complaints& complaints) {
  const GatewayFlags& given = read.given;
  check_store_file(given.store, complaints);
  const auto no_spill = given.spill_dir.given ? why_no_folder(read.options.spill_dir) : "";
  if (!no_spill.empty()) complaints.add(given.spill_dir.place, no_spill);
  bool all_there = true;
  for (const auto* file : {&given.tls_cert, &given.tls_key, &given.tls_client_ca}) {
    all_there = can_be_read(*file, complaints) && all_there;
  }
  if (given.tls_cert.text.empty() || !all_there) return;
  const auto context = http::TlsContext::for_server(read.options.tls);
  if (!context) complaints.add(given.tls_cert.place, context.error());
}

std::vector<std::string> complaints_about(GatewayFlags given) {
  Complaints complaints;
  const auto table = settings_of(given);
  for (const auto& setting : table) {
    if (config::given_at(setting) != nullptr) config::check(setting, complaints);
  }
  make_paths_absolute(table, given.folder);
  auto options = build_options(given, Purpose::gateway, complaints);
  if (options) check_named_files({std::move(given), std::move(*options)}, complaints);
  return complaints.lines();
}

void warn_of_laxer_routes(const ReadSettings& read, Complaints& warnings) {
  Complaints ignored;
  const auto given = read_routes(read.given.routes, ignored);
  const auto& routes = read.options.settings.routes.all();
  for (std::size_t i = 0; i < routes.size(); ++i) {
    if (routes[i].require_key) continue;
    const auto stricter =
        std::find_if(routes.begin(), routes.begin() + static_cast<std::ptrdiff_t>(i),
                     [&](const Route& route) { return matches_other_spellings(routes[i], route); });
    if (stricter == routes.begin() + static_cast<std::ptrdiff_t>(i)) continue;
    const RouteGiven& own = i < given.size() ? given[i] : read.given.rest;
    warnings.add(
        own.one("require_key").given ? own.one("require_key").place : own.one("match.path").place,
        "warning: " + stricter->path.text() +
            " needs a key, and this route does not: a request with another spelling of that "
            "path (%70 for p, // for /, a / at the end) comes here and runs without one; "
            "require a key here too, or let the upstream accept one spelling only");
  }
}

void warn_of_method_overrides(const ReadSettings& read, Complaints& warnings) {
  Complaints ignored;
  const auto given = read_routes(read.given.routes, ignored);
  const auto& routes = read.options.settings.routes.all();
  for (std::size_t i = 0; i < routes.size(); ++i) {
    if (!routes[i].allow_method_override) continue;
    const bool is_own = i < given.size() && given[i].one("allow_method_override").given;
    const auto& place = (is_own ? given[i] : read.given.rest).one("allow_method_override").place;
    warnings.add(place, "warning: " + routes[i].label() +
                            " allows a request to ask for another method: it keeps the route of "
                            "the method that it was sent with");
  }
}

}  // namespace idem::cli
