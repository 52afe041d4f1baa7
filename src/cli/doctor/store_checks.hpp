#pragma once

#include "cli/doctor/finding.hpp"
#include "cli/settings/settings_source.hpp"

namespace idem::cli::doctor {

/// Whether a start would open the store, and what it would warn of. An embedded store is only
/// looked at, beside a gateway or not. A server is asked as a start asks it, but creates nothing,
/// upgrades nothing and records nothing; its clock is compared with this machine's.
/// `options` outlives the probe.
Probe store_probe(const GatewayOptions& options);

}  // namespace idem::cli::doctor
