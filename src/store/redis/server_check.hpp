#pragma once

#include "store/redis/connection.hpp"

#include <optional>
#include <string>
#include <vector>

/// Whether a server may hold a store: what it says about itself (INFO, CONFIG GET).
namespace idem::redis {

struct ServerCheck {
  std::optional<std::string> refusal;  ///< Why it may not; none: it may.
  bool is_elsewhere = false;           ///< Because of its role: another one has taken it over.
  std::vector<std::string> warnings;   ///< What it would forget, and when.
};

/// Pure. `appendfsync`: empty where the server does not say.
ServerCheck judge_server(std::string_view info, std::string_view appendfsync, bool is_cluster);

/// Asks it. What it does not answer is a refusal.
Task<ServerCheck> check_server(Connection& connection, bool is_cluster);

}  // namespace idem::redis
