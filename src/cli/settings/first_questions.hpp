#pragma once

#include "cli/settings/gateway_flags.hpp"

#include <iosfwd>
#include <string_view>
#include <vector>

namespace idem::cli {

/// The flags without which no gateway starts and that are not given.
std::vector<std::string_view> missing_flags(const GatewayFlags& flags);

/// Asks for upstream, scope and store, and for what a scope needs, as far as they are not given.
/// Complains about a wrong answer as about a wrong flag, and asks again. False: the input ended
/// before the last answer.
bool ask_for_settings(GatewayFlags& flags, std::istream& in, std::ostream& out);

}  // namespace idem::cli
