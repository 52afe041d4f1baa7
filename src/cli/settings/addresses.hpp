#pragma once

#include "cli/settings/gateway_flags.hpp"

#include <string>

/// What the addresses of a process say together.
namespace idem::cli {

/// Whether only this machine reaches a listener at `address`, a HOST:PORT: by name localhost, or an
/// address of the loopback.
bool is_loopback(const std::string& address);

/// HOST:PORT each, where they were given; and of a gateway that its listeners and its upstream are
/// not one address, where requests would go round in a circle or the operator's API stand open.
void check_addresses(const GatewayFlags& flags, Purpose purpose, Complaints& complaints);

/// A name or an address as it stands in a Host field, without scheme and port.
void check_admin_hosts(const GivenList& hosts, Complaints& complaints);

}  // namespace idem::cli
