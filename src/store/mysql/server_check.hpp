#pragma once

#include "store/mysql/connection.hpp"

namespace idem::mysql {

struct ServerCheck {
  bool is_mariadb = true;
  std::size_t packet_max = 0;  ///< max_allowed_packet: the longest text of statements.
};

/// Why a server is refused.
struct Refusal {
  std::string why;          ///< For people.
  bool is_replica = false;  ///< Another server of the URL may be its primary.
};

/// Refuses, by the setting's name, a server that would forget commits, that is a replica, or that
/// shares its tables with other writers in a way that this store is not made for.
Task<std::expected<ServerCheck, Refusal>> check_server(Connection& connection);

}  // namespace idem::mysql
