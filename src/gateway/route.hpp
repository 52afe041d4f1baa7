#pragma once

#include "coding/decoded.hpp"
#include "core/exchange/policy.hpp"
#include "core/naming/former_names.hpp"
#include "core/naming/path_pattern.hpp"

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>
#include <idem/record.hpp>
#include <idem/route_name.hpp>
#include <idem/worker_limits.hpp>

#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::gateway {

/// How a duplicate of a running attempt is answered (protocol.md §7).
enum class Mode : std::uint8_t { conflict, wait, async };

/// Whether the rules for keys decide about the route's requests.
enum class Enforce : std::uint8_t {
  on,
  shadow,  ///< No: every request passes, and what they would decide is counted beside it.
};

using idem::PathPattern;

/// How the gateway serves the requests that match. Without configuration there is one, the rest.
struct Route {
  std::string name;                   ///< The operation; empty: each METHOD and path is its own.
  std::vector<std::string> formerly;  ///< Operations under which older records may lie.
  std::vector<std::string> methods;   ///< Empty: all.
  PathPattern path;

  Mode mode = Mode::conflict;
  Enforce enforce = Enforce::on;
  bool require_key = true;
  /// A request may ask for another method than its own (MethodOverride); both count then.
  bool allow_method_override = false;
  /// A login of a connection (NTLM, Negotiate) keeps its connection to the upstream for its client.
  bool pin_logins = false;
  AnswerPolicy answers;
  FingerprintRule fingerprint;
  std::vector<Coding> decode;  ///< Of a body so encoded, the content counts instead of the bytes.
  bool jsonrpc = false;        ///< The `id` of a JSON-RPC call does not count (§10, §14).
  Millis upstream_timeout = limits::upstream_timeout_default;
  Millis lease = limits::lease_default;
  LeasePolicy lease_policy = LeasePolicy::unknown;
  Millis retention = limits::retention_default;
  Millis tombstone = limits::tombstone_default;
  /// The configuration accepts that a key may run again behind such a short tombstone.
  bool accepts_rerun_after_expiry = false;
  Millis wait_max = limits::wait_default;
  std::size_t request_body_bytes_max = limits::request_body_bytes_default;
  std::size_t response_body_bytes_max = limits::response_body_bytes_default;
  /// False: the record keeps that the work ran, but not its answer's body (T37).
  bool store_body = true;
  /// Fields that are stored and replayed although §14 withholds them by default.
  std::vector<std::string> replay_fields;
  bool separate_dispatch_mark = false;
  /// A client may have its request run later, by `Prefer: respond-async` (RFC 7240 §4.1).
  bool respond_async = false;
  /// Credentials that are stored, sealed, with an asynchronous request; all others are dropped.
  std::vector<std::string> async_keep_fields;
  std::size_t async_running_max = limits::async_route_default;  ///< Stored requests run at a time.
  std::size_t async_tenant_max = limits::async_tenant_default;  ///< Of them, of one scope.
  /// The provider that is asked about unknown outcomes, and how soon; empty: none.
  std::string reconcile;
  std::optional<Millis> reconcile_in;
  bool reconciles_by_key = false;  ///< By the client's key, which is kept sealed for that.
  std::size_t counted_at = 0;      ///< Where its answers are counted (metrics::Routes).

  /// POST and PATCH, where `require_key` (protocol.md §8).
  bool needs_key(std::string_view method) const noexcept;
  /// True when some of its requests are stored to be run later.
  bool ever_async() const noexcept { return mode == Mode::async || respond_async; }
  /// True when one of its methods needs a key.
  bool ever_needs_key() const noexcept;
  bool in_shadow() const noexcept { return enforce == Enforce::shadow; }
  /// True when nothing can reach `other` behind this route.
  bool covers(const Route& other) const noexcept;
  /// Its name for people: in metrics, logs and reports.
  const std::string& label() const noexcept { return name.empty() ? path.text() : name; }
  /// The operation under which a request's record is stored.
  std::string operation(std::string_view method, std::string_view path_sent) const;
};

/// How the routes name their requests. The store has to adopt this before they are served
/// (AdoptRoutes); only this part of a table can make it refuse.
std::vector<RouteName> names_of(const std::vector<Route>& routes);

/// The routes in their order; the first that matches wins, and the last one matches everything.
class RouteTable {
 public:
  RouteTable() : RouteTable(std::vector<Route>{}, Route{}) {}
  RouteTable(std::vector<Route> routes, Route rest);

  const Route& find(std::string_view method, std::string_view path) const noexcept;
  const std::vector<Route>& all() const noexcept { return routes_; }
  /// Gives each route its place by its label: its name, or else its path.
  void count_by(const std::function<std::size_t(const std::string& label)>& place_of);

  /// The route of a stored request: the one that matches it today, if that still has its operation,
  /// otherwise the one of that name. None: its route is gone.
  const Route* route_of(const std::string& operation, std::string_view method,
                        std::string_view path) const;

  /// The route under which records of this operation are stored today, where only the operation is
  /// known. None: its route is gone.
  const Route* route_of(const std::string& operation) const;

  /// The provider that is asked about the record: the one recorded with its attempt, otherwise its
  /// route's of today. Empty: none.
  std::string provider_of(const Record& record) const;

  /// The other operations under which a record of this request may lie, by the `formerly` of its
  /// route, which is one of ours. An entry that the store would not adopt is none.
  std::vector<std::string> former_operations(const Route& route, std::string_view method,
                                             std::string_view path) const;
  /// The same where only the operation is known: the operation itself, and others under which a
  /// record of it may lie. A name does not contain the paths that its
  /// route's patterns matched; "METHOD /path" of the request does.
  std::vector<std::string> naming_parts(const std::string& operation) const;

 private:
  std::vector<Route> routes_;
  std::vector<FormerNames> former_;  // of the route at the same place
};

}  // namespace idem::gateway
