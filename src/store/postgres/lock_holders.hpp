#pragma once

#include "store/postgres/connection.hpp"

#include <string>

namespace idem::postgres {

/// Who holds the lock of the generation exclusively, so that no reserve goes on: "pid 12 of user
/// shop", for people. Any role that may connect can take it (docs/security.md). Empty: nobody, or
/// the server did not say.
Task<std::string> who_holds_the_generation(Connection& connection);

}  // namespace idem::postgres
