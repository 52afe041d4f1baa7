#pragma once

#include "admin/links.hpp"
#include "admin/login/login.hpp"
#include "admin/setting_change.hpp"
#include "core/exchange/explanation.hpp"
#include "http/server.hpp"
#include "loop/loop_watch.hpp"
#include "metrics/registry.hpp"

#include <idem/log.hpp>
#include <idem/store.hpp>

#include <atomic>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace idem::admin {

class AuditTrail;
struct RoutePolicies;

/// The parts that the admin API uses. All references must outlive it.
struct AdminParts {
  Loop& loop;
  Store& store;
  http::SpillSpace& spill;
  metrics::Registry& registry;
  const std::atomic<bool>& draining;
  LogSink log;
  AuditTrail& audit;
  Login login;
  /// All gauges but the census; called on the loop's thread.
  std::function<metrics::Gauges()> gauges;
  /// Whether `gauges` fills in store_answers; otherwise the census decides.
  bool watches_store = true;
  std::function<std::expected<Millis, std::string>(const std::string&)> parse_duration;
  /// An operation and the former names of its records; called on the loop's thread.
  std::function<std::vector<std::string>(const std::string&)> naming_parts;
  /// Host names besides loopback that requests to this listener may have.
  std::vector<std::string> hosts{};
  Links links{};
  Millis evidence_grace = limits::evidence_grace_default;
  /// The provider that is asked about this record; empty: none. Called on the loop's thread.
  std::function<std::string(const Record&)> provider_of = [](const Record& record) {
    return record.provider;
  };
  /// Empty: the process has no reload.
  Reloading reloading{};
  /// The policy of each route that applies now; empty: this process serves no requests. Called on
  /// the loop's thread.
  std::function<std::shared_ptr<const RoutePolicies>()> route_policies{};
  /// Requests of shadow routes that are being observed; empty: this process serves none. Safe on
  /// the loop's thread.
  std::function<std::size_t()> observing_now{};
  /// The loops that the probes report, seen from `loop`; null: this process has no others.
  const LoopWatch* loops = nullptr;
  /// What would become of a request; empty: this process serves none. The request outlives the
  /// task. Called on the loop's thread.
  std::function<Task<std::expected<Explanation, NotExplained>>(const RequestInQuestion&)> explain{};
};

/// The operator's listener (docs/operations.md): /livez, /readyz, /metrics, /v1/status,
/// /v1/explain, /v1/shadow, /v1/routes, the records under /v1/keys, the messages, the tokens, the
/// audit. Every request needs a login with the role of its row in endpoints(); probes may be open.
/// It also refuses requests whose Host is neither loopback nor configured (DNS rebinding) and those
/// of web pages of other origins, and a change needs a media type that a page cannot send without a
/// preflight. Serves on its loop's thread.
std::unique_ptr<http::Service> make_admin(AdminParts parts);

}  // namespace idem::admin
