#pragma once

#include "cli/settings/gateway_options.hpp"
#include "metrics/shard.hpp"
#include "workers/reconciler.hpp"
#include "workers/runner.hpp"

#include <memory>
#include <mutex>

namespace idem::cli {

/// The reconciler on a thread of its own, because it waits for providers. Without providers it does
/// not run.
class Reconciling {
 public:
  using SharedSettings = std::shared_ptr<const gateway::GatewaySettings>;

  Reconciling(Store& store, LogSink log, metrics::Shard& shard, Providers providers,
              SharedSettings settings);
  ~Reconciling();

  /// Uses the routes of these settings from now on. Any thread.
  void use(SharedSettings settings);

 private:
  std::shared_ptr<const workers::Provider> provider_of(const Record& record);
  std::string key_of(Store& store, const Record& record);

  const Providers providers_;
  std::mutex mutex_;
  SharedSettings settings_;
  workers::Reconciler reconciler_;
  std::unique_ptr<workers::Runner> runner_;
};

}  // namespace idem::cli
