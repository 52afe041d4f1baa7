#pragma once

#include "store/postgres/connection.hpp"

#include <expected>
#include <optional>
#include <string>

/// Whether a server may hold this store: what each new connection is asked before it is used.
namespace idem::postgres {

extern const std::string server_check_sql;
/// Of its answer: why the server, or the role, is not safe. A sentence.
std::optional<std::string> why_unsafe(const Rows& rows);

inline constexpr const char* store_id_sql = "SELECT store_id FROM idem.identity";
std::expected<Uuid, std::string> store_id_in(const Rows& rows);
inline constexpr const char* another_store = "what answers there now is another store";

}  // namespace idem::postgres
