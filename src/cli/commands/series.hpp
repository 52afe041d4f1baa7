#pragma once

#include "cli/commands.hpp"
#include "cli/commands/tracing.hpp"
#include "metrics/registry.hpp"

namespace idem::cli {

/// Creates all series at the start; otherwise a first failure would not show as an increase.
void name_series(metrics::Registry& registry, const GatewayOptions& options, Tracing& tracing);

}  // namespace idem::cli
