#pragma once

#include <string>
#include <string_view>

#include "support/json.hpp"
#include "support/live.hpp"

namespace idem::test {

/// GET of this path of ours.
Request looking_up(std::string target, std::string_view tenant = "acme");

/// The status resource once the operation of this 202 has ended; null where it never did.
Json state_when_ended(std::string_view address, const Response& accepted,
                      std::string_view tenant = "acme");

}  // namespace idem::test
