#pragma once

#include "cli/settings/gateway_flags.hpp"

#include <string>
#include <string_view>

/// Checks of the addresses of a process.
namespace idem::cli {

/// Whether only this machine reaches a listener at `address`, a HOST:PORT: localhost or a loopback
/// address.
bool is_loopback(const std::string& address);

/// Checks that given addresses are HOST:PORT, and that a gateway's two listeners and its upstream
/// have different ones: requests would return to the gateway, or clients would reach the admin API.
void check_addresses(const GatewayFlags& flags, Purpose purpose, Complaints& complaints);

/// Checks that each is a name or an address as in a Host field, without scheme and port.
void check_admin_hosts(const GivenList& hosts, Complaints& complaints);

/// Checks that an address, if it is given, is one of a web page and has `place` in it.
void check_link(const Given& link, std::string_view place, Complaints& complaints);

}  // namespace idem::cli
