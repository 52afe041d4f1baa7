#include "cli/commands/background.hpp"

#include "workers/lifecycle.hpp"

namespace idem::cli {

Background::Background(const Parts& parts)
    : watch_(parts.options, parts.store, parts.log, parts.registry),
      lifecycle_(workers::keep_lifecycle(parts.store, parts.log, parts.registry.add_shard())),
      reconciling_(std::make_unique<Reconciling>(parts.indexed, parts.log,
                                                 parts.registry.add_shard(),
                                                 parts.options.providers, parts.settings)) {
  if (parts.options.destinations.empty()) return;
  relay_ = std::make_unique<Relay>(parts.store, parts.log, parts.options.destinations);
}

Background::~Background() {
  relay_.reset();
  reconciling_.reset();
  lifecycle_->stop();
}

}  // namespace idem::cli
