#pragma once

#include "config/setting.hpp"
#include "gateway/route.hpp"

#include <idem/limits.hpp>
#include <idem/worker_limits.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <variant>

/// The settings of a route. Each is one row: its names in an entry of `routes` and for all routes,
/// its shape, help and default, and the member of gateway::Route that it sets. The variable, the
/// JSON Schema, `config print` and docs/configuration.md follow from the row.
namespace idem::cli {

/// The member that receives the value. None: parse.cpp or parse_routes.cpp has a function for it.
using RouteMember = std::variant<std::monostate, bool gateway::Route::*,
                                 std::size_t gateway::Route::*, Millis gateway::Route::*>;

/// Where a setting is given for all routes. Empty: only routes have it.
struct ForAllRoutes {
  std::string_view path{};
  std::string_view flag{};
};

struct RouteSetting {
  std::string_view path;  ///< In an entry of `routes`.
  config::Shape shape;
  std::string_view help;
  std::string_view initial{};  ///< The default, as a file would give it.
  ForAllRoutes all{};
  RouteMember member{};
  config::Role role = config::Role::gateway;
  bool required = false;
};

namespace route_shapes {
inline constexpr config::Shape places = config::number(1, limits::async_running_max);
inline constexpr config::Shape mode = config::one_of("conflict|wait|async");
inline constexpr config::Shape enforce = config::one_of("on|shadow");
inline constexpr config::Shape preset = config::one_of("ietf|stripe|lenient");
inline constexpr config::Shape rules = config::statuses("store|release|unknown");
inline constexpr config::Shape lease_policy = config::one_of("unknown|resume|rerun");
inline constexpr config::Shape mark = config::one_of("reserve|separate");
}  // namespace route_shapes

inline constexpr std::array route_settings{
    RouteSetting{.path = "name",
                 .shape = config::text,
                 .help = "the operation that records are stored under; keep it when the pattern "
                         "changes",
                 .role = config::Role::gateway_and_worker},
    RouteSetting{.path = "formerly",
                 .shape = config::texts,
                 .help = "former operations, under which older records are stored",
                 .role = config::Role::gateway_and_worker},
    RouteSetting{.path = "match.methods",
                 .shape = config::texts,
                 .help = "methods such as POST; by default all",
                 .role = config::Role::gateway_and_worker},
    RouteSetting{.path = "match.path",
                 .shape = config::text,
                 .help = "pattern such as /v1/quotes/{id} or /v1/{rest...}",
                 .role = config::Role::gateway_and_worker,
                 .required = true},
    RouteSetting{.path = "mode",
                 .shape = route_shapes::mode,
                 .help = "the answer to a duplicate while the first request runs",
                 .initial = "conflict",
                 .all = {"defaults.mode", "--mode"}},
    RouteSetting{.path = "enforce",
                 .shape = route_shapes::enforce,
                 .help = "shadow: every request passes, and idem shadow report counts what the "
                         "rules for keys would do",
                 .initial = "on",
                 .all = {"defaults.enforce", "--enforce"}},
    RouteSetting{.path = "require_key",
                 .shape = config::truth,
                 .help = "POST and PATCH need a key",
                 .initial = "true",
                 .all = {"defaults.require_key", "--require-key"},
                 .member = &gateway::Route::require_key},
    RouteSetting{.path = "allow_method_override",
                 .shape = config::truth,
                 .help = "a request may ask for another method (X-HTTP-Method-Override, _method): "
                         "both count, and a key is needed if either needs one; false: such a "
                         "request gets 400",
                 .initial = "false",
                 .all = {"defaults.allow_method_override", "--allow-method-override"},
                 .member = &gateway::Route::allow_method_override},
    RouteSetting{.path = "pin_logins",
                 .shape = config::truth,
                 .help = "a client that logs in by NTLM or Negotiate keeps its connection to the "
                         "upstream; leave it false behind a proxy, which shares its connections",
                 .initial = "false",
                 .all = {"defaults.pin_logins", "--pin-logins"},
                 .member = &gateway::Route::pin_logins},
    RouteSetting{.path = "preset",
                 .shape = route_shapes::preset,
                 .help = "the meaning of an upstream's answer",
                 .initial = "ietf",
                 .all = {"defaults.preset", "--preset"}},
    RouteSetting{
        .path = "statuses",
        .shape = route_shapes::rules,
        .help =
            "the meaning of an upstream's answer with that status; release: the work was not done"},
    RouteSetting{.path = "errors",
                 .shape = config::one_of("rolled_back"),
                 .help = "rolled_back: with a 5xx other than 502, 503 and 504 the service promises "
                         "that it rolled back its transaction"},
    RouteSetting{.path = "fingerprint.include",
                 .shape = config::texts,
                 .help = "JSON Pointers to the parts of the body that count; by default, and if "
                         "none matches, the whole body"},
    RouteSetting{.path = "fingerprint.exclude",
                 .shape = config::texts,
                 .help = "JSON Pointers to the parts of the body that do not count"},
    RouteSetting{.path = "fingerprint.headers",
                 .shape = config::texts,
                 .help = "further header fields that count; some always do"},
    RouteSetting{.path = "fingerprint.decode",
                 .shape = config::texts,
                 .help = "gzip, deflate, br: the content of a body with such a Content-Encoding "
                         "counts; by default its bytes do"},
    RouteSetting{.path = "fingerprint.jsonrpc",
                 .shape = config::truth,
                 .help =
                     "the id of a JSON-RPC 2.0 call does not count, and a retry gets the answer "
                     "under its own id",
                 .member = &gateway::Route::jsonrpc},
    RouteSetting{.path = "timeout",
                 .shape = config::duration,
                 .help = "time from the first byte sent to the whole answer",
                 .initial = "30s",
                 .all = {"upstream.timeout", "--upstream-timeout"},
                 .member = &gateway::Route::upstream_timeout},
    RouteSetting{.path = "lease",
                 .shape = config::duration,
                 .help = "how long an attempt holds its record without renewal",
                 .initial = "60s",
                 .all = {"defaults.lease", "--lease"},
                 .member = &gateway::Route::lease},
    RouteSetting{
        .path = "lease_policy",
        .shape = route_shapes::lease_policy,
        .help = "what happens at the end of a lease: unknown, or rerun if repeating is safe",
        .initial = "unknown"},
    RouteSetting{.path = "repeating_is_safe",
                 .shape = config::truth,
                 .help = "required for lease_policy: rerun: the work may run twice without harm"},
    RouteSetting{.path = "retention",
                 .shape = config::duration,
                 .help = "how long an answer is replayed",
                 .initial = "24h",
                 .all = {"defaults.retention", "--retention"},
                 .member = &gateway::Route::retention},
    RouteSetting{.path = "tombstone",
                 .shape = config::duration,
                 .help = "how long after that an expired key is refused",
                 .initial = "30d",
                 .all = {"defaults.tombstone", "--tombstone"},
                 .member = &gateway::Route::tombstone},
    RouteSetting{.path = "accept_rerun_after_expiry",
                 .shape = config::truth,
                 .help = "required for a tombstone below 24h",
                 .initial = "false",
                 .all = {"defaults.accept_rerun_after_expiry", "--accept-rerun-after-expiry"},
                 .member = &gateway::Route::accepts_rerun_after_expiry},
    RouteSetting{.path = "replay_headers",
                 .shape = config::texts,
                 .help = "additional fields to store and replay, such as Set-Cookie",
                 .all = {"defaults.replay_headers", "--replay-field"}},
    RouteSetting{.path = "dispatch_mark",
                 .shape = route_shapes::mark,
                 .help = "reserve: one durable write before dispatch; separate: a second one just "
                         "before the first byte",
                 .initial = "reserve",
                 .all = {"defaults.dispatch_mark", "--dispatch-mark"}},
    RouteSetting{.path = "respond_async",
                 .shape = config::truth,
                 .help = "a client may ask for a later run: Prefer: respond-async",
                 .initial = "false",
                 .all = {"defaults.respond_async", "--respond-async"},
                 .member = &gateway::Route::respond_async},
    RouteSetting{
        .path = "async.keep_headers",
        .shape = config::texts,
        .help = "credentials to store, sealed, with a request that runs later; others are dropped",
        .all = {"defaults.async.keep_headers", "--async-keep-header"}},
    RouteSetting{.path = "async.concurrency",
                 .shape = route_shapes::places,
                 .help = "stored requests of one route that run at the same time",
                 .initial = "32",
                 .all = {"defaults.async.concurrency", "--async-concurrency"},
                 .member = &gateway::Route::async_running_max},
    RouteSetting{.path = "async.tenant_concurrency",
                 .shape = route_shapes::places,
                 .help = "the same, for one tenant",
                 .initial = "16",
                 .all = {"defaults.async.tenant_concurrency", "--async-tenant-concurrency"},
                 .member = &gateway::Route::async_tenant_max},
    RouteSetting{.path = "limits.request_body",
                 .shape = config::size_up_to(limits::request_body_bytes_cap),
                 .help = "largest keyed request body",
                 .initial = "1MiB",
                 .all = {"limits.request_body", "--request-body-max"},
                 .member = &gateway::Route::request_body_bytes_max},
    RouteSetting{.path = "limits.response_body",
                 .shape = config::size_up_to(limits::request_body_bytes_cap),
                 .help = "largest answer that is stored",
                 .initial = "1MiB",
                 .all = {"limits.response_body", "--response-body-max"},
                 .member = &gateway::Route::response_body_bytes_max},
    RouteSetting{.path = "wait_max",
                 .shape = config::duration,
                 .help = "how long a duplicate may wait, by the mode or by Prefer: wait=N; 0s: "
                         "never; at most 5m",
                 .initial = "30s",
                 .all = {"limits.wait_max", "--wait-max"},
                 .member = &gateway::Route::wait_max},
    RouteSetting{.path = "store_body",
                 .shape = config::truth,
                 .help = "false: the record says that the work ran, without the answer's body",
                 .initial = "true",
                 .member = &gateway::Route::store_body},
    RouteSetting{.path = "reconcile",
                 .shape = config::text,
                 .help = "the provider that is asked about unknown outcomes",
                 .role = config::Role::gateway_and_worker},
};

/// The sections of the settings for all routes; settings_of(GatewayFlags&) lists each of them.
inline constexpr std::array<std::string_view, 3> for_all_sections{"upstream.", "defaults.",
                                                                  "limits."};

// A row of another section would be in no table: file, flag and variable would not know it.
static_assert(std::ranges::all_of(route_settings, [](const RouteSetting& row) {
  return row.all.path.empty() || std::ranges::any_of(for_all_sections, [&](auto section) {
           return row.all.path.starts_with(section);
         });
}));

/// A section of the settings for all routes. Another name does not compile.
class ForAllSection {
 public:
  consteval ForAllSection(const char* name)
      : name_(*std::ranges::find(for_all_sections, std::string_view(name))) {}
  constexpr operator std::string_view() const noexcept { return name_; }

 private:
  std::string_view name_;
};

/// The number of a row, found by its path when the program is compiled.
class RouteRow {
 public:
  consteval RouteRow(const char* path) {
    while (route_settings.at(number_).path != std::string_view(path)) ++number_;
  }
  constexpr operator std::size_t() const noexcept { return number_; }

 private:
  std::size_t number_ = 0;
};

/// The values that one entry of `routes`, or the settings for all routes, give. Empty: the default.
class RouteGiven {
 public:
  RouteGiven();
  /// The values of all routes that give none: the rows' defaults.
  static RouteGiven initial();

  config::Given& one(RouteRow row) { return std::get<config::Given>(values_[row]); }
  const config::Given& one(RouteRow row) const { return std::get<config::Given>(values_[row]); }
  const config::GivenList& list(RouteRow row) const {
    return std::get<config::GivenList>(values_[row]);
  }
  const config::GivenMap& map(RouteRow row) const {
    return std::get<config::GivenMap>(values_[row]);
  }
  config::Slot slot(std::size_t row);
  const config::Given& at(std::size_t row) const { return std::get<config::Given>(values_[row]); }

  config::Place place{};

 private:
  std::array<std::variant<config::Given, config::GivenList, config::GivenMap>,
             route_settings.size()>
      values_;
};

/// The table of one entry of `routes`. Slots point into `route`.
std::vector<config::Setting> settings_of(RouteGiven& route);
/// The rows of those settings for all routes whose path begins with `section`, such as "limits.".
std::vector<config::Setting> settings_for_all(RouteGiven& rest, ForAllSection section);

}  // namespace idem::cli
