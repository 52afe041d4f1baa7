#pragma once

#include "store/redis/connection.hpp"

#include <optional>
#include <string>
#include <vector>

/// Decides by a server's own report (INFO, CONFIG GET) whether it may hold a store.
namespace idem::redis {

struct ServerCheck {
  std::optional<std::string> refusal;  ///< Why it may not; none: it may.
  bool is_elsewhere = false;           ///< Refused as a replica: another server is the master.
  std::vector<std::string> warnings;   ///< The losses that its settings allow.
  /// What may be lost: nothing, with a crash of its machine, or whenever it ends.
  enum class Loss : std::uint8_t { none, in_a_crash, at_its_end };
  Loss loss = Loss::none;
  std::string why_lost;  ///< The one of the warnings that says so.
};

/// What CONFIG GET says; empty: the server does not report it.
struct ReportedSettings {
  std::string appendfsync{};
  std::string proto_max_bulk_len{};
};

/// Pure.
ServerCheck judge_server(std::string_view info, const ReportedSettings& settings, bool is_cluster);

/// Asks the server. No reply to INFO is a refusal.
Task<ServerCheck> check_server(Connection& connection, bool is_cluster);

}  // namespace idem::redis
