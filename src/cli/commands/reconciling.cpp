#include "cli/commands/reconciling.hpp"

#include "gateway/keyed/sealing.hpp"

namespace idem::cli {

Reconciling::Reconciling(Store& store, LogSink log, metrics::Shard& shard, Providers providers,
                         SharedSettings settings)
    : providers_(std::move(providers)),
      settings_(std::move(settings)),
      reconciler_(
          store, std::move(log), shard,
          [this](const Record& record) { return provider_of(record); },
          [this, &store](const Record& record) { return key_of(store, record); }) {
  if (providers_.empty()) return;
  runner_ = std::make_unique<workers::Runner>(
      [this] { return reconciler_.turn() ? Millis(0) : reconciler_.rest(); });
}

Reconciling::~Reconciling() {
  reconciler_.stop();
  runner_.reset();
}

void Reconciling::use(SharedSettings settings) {
  const std::lock_guard lock(mutex_);
  settings_ = std::move(settings);
}

std::shared_ptr<const workers::Provider> Reconciling::provider_of(const Record& record) {
  const std::lock_guard lock(mutex_);
  const auto found = providers_.find(settings_->routes.provider_of(record));
  return found != providers_.end() ? found->second : nullptr;
}

std::string Reconciling::key_of(Store& store, const Record& record) {
  const std::lock_guard lock(mutex_);
  return gateway::open_key(record, store.identity(), *settings_).value_or("");
}

}  // namespace idem::cli
