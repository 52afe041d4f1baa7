#pragma once

#include "cli/commands.hpp"
#include "workers/runner.hpp"

#include <memory>
#include <mutex>

namespace idem::cli {

/// The reconciler on a thread of its own, because it waits for others. Nothing runs where there are
/// no providers.
class Reconciling {
 public:
  using SharedSettings = std::shared_ptr<const gateway::GatewaySettings>;

  Reconciling(Store& store, LogSink log, metrics::Shard& shard, Providers providers,
              SharedSettings settings);
  ~Reconciling();

  /// Which routes name which provider, from here on. Any thread.
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
