#pragma once

#include "cli/doctor/finding.hpp"
#include "cli/settings/settings_source.hpp"

/// The addresses of the settings: those on which a gateway listens, and those of others.
namespace idem::cli::doctor {

/// That nothing keeps a gateway from listening, or that one listens already; and who reaches the
/// admin listener.
Findings check_listeners(const GatewayOptions& options, Purpose purpose);

/// One for each party that the gateway asks: resolves its name, connects, makes the handshake of
/// TLS, and closes. It sends no request.
std::vector<Probe> service_probes(const ReadSettings& read);

}  // namespace idem::cli::doctor
