#include "cli/reconciling.hpp"

#include <idem/worker_limits.hpp>

namespace idem::cli {

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

Reconciling::~Reconciling() {
  reconciler_.stop();
  runner_.reset();
}

void Reconciling::use(SharedSettings settings) {
  const std::lock_guard lock(mutex_);
  settings_ = std::move(settings);
}

std::shared_ptr<const workers::Provider> Reconciling::provider_of(const std::string& operation) {
  const std::lock_guard lock(mutex_);
  const auto* const route = settings_->routes.route_of(operation);
  if (route == nullptr || route->reconcile.empty()) return nullptr;
  const auto found = providers_.find(route->reconcile);
  return found != providers_.end() ? found->second : nullptr;
}

}  // namespace idem::cli
