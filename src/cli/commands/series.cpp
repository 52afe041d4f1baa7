#include "cli/commands/series.hpp"

#include "cli/commands/tracing.hpp"
#include "cli/settings/gateway_options.hpp"
#include "metrics/registry.hpp"
#include "workers/reconciler.hpp"

#include <idem/version.hpp>

namespace idem::cli {

void name_series(metrics::Registry& registry, const GatewayOptions& options, Tracing& tracing) {
  registry.version(IDEM_VERSION);
  registry.add_upstream(options.settings.authorize.has_value());
  registry.add_traces(tracing.counts());
  for (const auto& [name, provider] : options.providers) {
    registry.add_provider(name, provider->counts);
  }
}

}  // namespace idem::cli
