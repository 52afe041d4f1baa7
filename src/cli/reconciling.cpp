#include "cli/reconciling.hpp"

#include <idem/worker_limits.hpp>

#include <algorithm>

namespace idem::cli {
namespace {

/// The route under which records of this operation are stored today.
const gateway::Route* route_of(const gateway::RouteTable& routes, const std::string& operation) {
  for (const auto& route : routes.all()) {
    const bool is_its = route.name == operation ||
                        std::ranges::find(route.formerly, operation) != route.formerly.end();
    if (is_its) return &route;
  }
  const auto blank = operation.find(" /");
  if (blank == operation.npos) return nullptr;
  const std::string_view text = operation;
  return &routes.find(text.substr(0, blank), text.substr(blank + 1));
}

}  // namespace

Reconciling::Reconciling(Store& store, LogSink log, metrics::Shard& shard, Providers providers,
                         SharedSettings settings)
    : providers_(std::move(providers)),
      settings_(std::move(settings)),
      reconciler_(store, std::move(log), shard,
                  [this](const std::string& operation) { return provider_of(operation); }) {
  if (providers_.empty()) return;
  runner_ = std::make_unique<workers::Runner>(
      std::vector<workers::RunOnce>{[this] { return reconciler_.turn(); }},
      limits::reconcile_interval);
}

Reconciling::~Reconciling() { runner_.reset(); }

void Reconciling::use(SharedSettings settings) {
  const std::lock_guard lock(mutex_);
  settings_ = std::move(settings);
}

std::shared_ptr<const workers::Provider> Reconciling::provider_of(const std::string& operation) {
  const std::lock_guard lock(mutex_);
  const auto* const route = route_of(settings_->routes, operation);
  if (route == nullptr || route->reconcile.empty()) return nullptr;
  const auto found = providers_.find(route->reconcile);
  return found != providers_.end() ? found->second : nullptr;
}

}  // namespace idem::cli
