#pragma once

namespace idem::metrics {
class Registry;
}

namespace idem::cli {

struct GatewayOptions;
class Tracing;

/// Creates all series at the start; otherwise a first failure would not show as an increase.
void name_series(metrics::Registry& registry, const GatewayOptions& options, Tracing& tracing);

}  // namespace idem::cli
