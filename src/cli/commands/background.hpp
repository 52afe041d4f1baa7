#pragma once

#include "cli/commands/machine_watch.hpp"
#include "cli/commands/reconciling.hpp"
#include "cli/settings/gateway_options.hpp"
#include "workers/runner.hpp"

#include <idem/relay.hpp>

#include <memory>

namespace idem::cli {

/// What a gateway and a worker do beside requests, on threads of their own: they sweep and reap,
/// ask providers, deliver messages, and look at disks and clock.
class Background {
 public:
  struct Parts {
    Store& store;
    Store& indexed;  ///< Likewise, with what a search finds.
    LogSink log;
    metrics::Registry& registry;
    const GatewayOptions& options;
    Reconciling::SharedSettings settings;
  };
  explicit Background(const Parts& parts);
  /// Finishes and records the work in progress.
  ~Background();

  /// Uses the routes of these settings from now on. Any thread.
  void use(Reconciling::SharedSettings settings) { reconciling_->use(std::move(settings)); }

 private:
  MachineWatch watch_;
  std::unique_ptr<workers::Runner> lifecycle_;
  std::unique_ptr<Reconciling> reconciling_;
  std::unique_ptr<Relay> relay_;
};

}  // namespace idem::cli
