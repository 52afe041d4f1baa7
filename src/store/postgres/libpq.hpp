#pragma once

#include "store/postgres/connection.hpp"

#include <optional>
#include <string>

/// Shared by the store's connections and the blocking sessions.
namespace idem::postgres {

/// Why libpq cannot parse a URI; none: it can. Without libpq's quotation, which may be a password.
std::optional<std::string> why_unreadable(const std::string& uri);

/// Begins to connect to the first of the URI's servers that accepts writes, or to that at `place`
/// alone. The caller has to call PQfinish().
pg_conn* begin_connecting(const std::string& uri, const Place* place);

/// The connection's last error, on one line and without a password.
std::string trouble_of(const pg_conn* connection);

/// HOST:PORT/DATABASE of an open connection.
std::string place_of(const pg_conn* connection);

bool was_answered(const pg_result* result) noexcept;

/// The server's error for a statement; none: there is none, and the connection is unusable.
std::optional<Failure> failure_of(const pg_result* result);
/// The last error of a connection whose results its user has read. Its SQLSTATE is known only
/// under PQERRORS_VERBOSE, and empty otherwise.
Failure last_failure_of(const pg_conn* connection);

}  // namespace idem::postgres
