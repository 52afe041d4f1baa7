#include "metrics/shadow.hpp"

#include "metrics/tenants.hpp"

#include <algorithm>
#include <numeric>

namespace idem::metrics {
namespace {

using Clock = std::chrono::system_clock;

/// Those with most requests first; "other" last.
template <class Named>
void sort_by_requests(std::vector<Named>& rows, std::string Named::* name) {
  std::ranges::sort(rows, [&](const Named& a, const Named& b) {
    const bool a_rest = a.*name == others;
    const bool b_rest = b.*name == others;
    if (a_rest != b_rest) return b_rest;
    if (a.counts.requests() != b.counts.requests()) {
      return a.counts.requests() > b.counts.requests();
    }
    return a.*name < b.*name;
  });
}

}  // namespace

std::string_view name_of(Shadowed decision) noexcept {
  switch (decision) {
    case Shadowed::first:
      return "first";
    case Shadowed::duplicate:
      return "duplicates";
    case Shadowed::not_kept:
      return "not_kept";
    case Shadowed::misuse:
      return "misuse";
    case Shadowed::missing_key:
      return "missing_key";
    case Shadowed::bad_key:
      return "bad_key";
    case Shadowed::missing_scope:
      return "missing_scope";
    case Shadowed::refused:
      return "refused";
    case Shadowed::race:
      return "races";
    case Shadowed::unknown_retry:
      return "unknown_retries";
    case Shadowed::expired:
      return "expired";
    case Shadowed::not_observed:
      return "not_observed";
  }
  return "";
}

std::string_view name_of(NotObserved reason) noexcept {
  switch (reason) {
    case NotObserved::busy:
      return "busy";
    case NotObserved::memory:
      return "memory";
    case NotObserved::upload:
      return "upload";
    case NotObserved::not_sent:
      return "not_sent";
    case NotObserved::store:
      return "store";
    case NotObserved::store_slow:
      return "store_slow";
  }
  return "";
}

std::uint64_t ShadowCounts::requests() const noexcept {
  return std::accumulate(by_decision.begin(), by_decision.end(), std::uint64_t{0});
}

void Shadow::watch(const std::vector<Watched>& routes) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, row] : rows_) row.in_shadow = false;
  for (const Watched& one : routes) {
    Row& row = row_of(one.route);
    row.in_shadow = true;
    row.waits = one.waits;
  }
}

void Shadow::seen(const std::string& route, const ShadowSeen& request) {
  const auto at = static_cast<std::size_t>(request.decision);
  const std::lock_guard lock(mutex_);
  Row& row = row_of(route);
  ++row.counts.by_decision[at];
  if (request.decision == Shadowed::not_observed) {
    ++row.not_observed[static_cast<std::size_t>(request.reason)];
  }
  ShadowCounts* of_client = nullptr;
  ++tenant_of(row, request.scope, request.client, of_client).by_decision[at];
  ++of_client->by_decision[at];
  if (request.decision != Shadowed::first) add_example(row, at, request);
}

void Shadow::ended_unknown(const std::string& route, const ShadowSeen& request) {
  const std::lock_guard lock(mutex_);
  Row& row = row_of(route);
  ++row.counts.unknown;
  ShadowCounts* of_client = nullptr;
  ++tenant_of(row, request.scope, request.client, of_client).unknown;
  ++of_client->unknown;
  add_example(row, kinds - 1, request);
}

void Shadow::not_settled(const std::string& route) {
  const std::lock_guard lock(mutex_);
  ++row_of(route).not_settled;
}

Shadow::Row& Shadow::row_of(const std::string& route) {
  const auto found = rows_.find(route);
  if (found != rows_.end()) return found->second;
  const bool is_room = rows_.size() < limits::shadow_routes_max;
  const auto [at, added] = rows_.try_emplace(is_room ? route : std::string(others));
  if (added) at->second.since = Clock::now();
  return at->second;
}

ShadowCounts& Shadow::tenant_of(Row& row, std::string_view scope, std::string_view client,
                                ShadowCounts*& of_client) {
  auto tenant = row.tenants.find(scope);
  if (tenant == row.tenants.end()) {
    const bool is_room =
        row.tenants.size() < limits::shadow_tenants_max && rows_used_ < limits::shadow_rows_max;
    const auto [at, added] = row.tenants.try_emplace(std::string(is_room ? scope : others));
    if (added) ++rows_used_;
    tenant = at;
  }
  auto& clients = tenant->second.clients;
  auto found = clients.find(client);
  if (found == clients.end()) {
    const bool is_room =
        clients.size() < limits::shadow_clients_max && rows_used_ < limits::shadow_rows_max;
    const auto [at, added] = clients.try_emplace(std::string(is_room ? client : others));
    if (added) ++rows_used_;
    found = at;
  }
  of_client = &found->second;
  return tenant->second.counts;
}

void Shadow::add_example(Row& row, std::size_t kind, const ShadowSeen& request) {
  auto& newest = row.examples[kind];
  if (newest.size() == limits::shadow_examples_max) newest.pop_back();
  newest.push_front({.at = Clock::now(),
                     .scope = std::string(request.scope),
                     .client = std::string(request.client),
                     .ref = request.id ? to_hex(request.id->bytes) : std::string(),
                     .method = std::string(request.method),
                     .path = std::string(request.path.substr(0, limits::shadow_path_bytes_max)),
                     .why = std::string(request.why),
                     .key_bytes = request.key_bytes});
}

ShadowReport::Route Shadow::shown(const std::string& name, const Row& row) {
  ShadowReport::Route route{.name = name,
                            .since = row.since,
                            .in_shadow = row.in_shadow,
                            .waits = row.waits,
                            .counts = row.counts,
                            .not_observed = row.not_observed,
                            .not_settled = row.not_settled,
                            .tenants = {},
                            .examples = {}};
  for (const auto& [scope, tenant] : row.tenants) {
    auto& shown = route.tenants.emplace_back(scope, tenant.counts);
    for (const auto& [client, counts] : tenant.clients) shown.clients.push_back({client, counts});
    sort_by_requests(shown.clients, &ShadowReport::Client::name);
  }
  sort_by_requests(route.tenants, &ShadowReport::Tenant::scope);
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    const auto& newest = row.examples[kind];
    if (newest.empty()) continue;
    const auto of =
        kind == shadowed_count ? std::string_view("unknown") : name_of(static_cast<Shadowed>(kind));
    route.examples.push_back({of, {newest.begin(), newest.end()}});
  }
  return route;
}

std::vector<Shadow::Counted> Shadow::counted() const {
  const std::lock_guard lock(mutex_);
  std::vector<Counted> all;
  for (const auto& [name, row] : rows_) all.push_back({name, row.counts, row.not_settled});
  return all;
}

ShadowReport Shadow::report(const std::optional<std::string>& route) const {
  const std::lock_guard lock(mutex_);
  ShadowReport report{.since = since_, .under_way = 0, .routes = {}};
  for (const auto& [name, row] : rows_) {
    if (!route || *route == name) report.routes.push_back(shown(name, row));
  }
  return report;
}

}  // namespace idem::metrics
