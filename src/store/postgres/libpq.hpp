#pragma once

#include "store/postgres/connection.hpp"

#include <optional>
#include <string>

/// What the store's connections and the blocking sessions ask of libpq alike.
namespace idem::postgres {

/// Why libpq cannot read a URI; none: it can. What it quotes of it may be a password.
std::optional<std::string> why_unreadable(const std::string& uri);

/// Begins to connect to the first of the URI's servers that takes writes. The caller's to finish.
pg_conn* begin_connecting(const std::string& uri);

/// What went wrong last, on one line and without a password.
std::string trouble_of(const pg_conn* connection);

/// HOST:PORT/DATABASE of a connection that is open.
std::string place_of(const pg_conn* connection);

bool was_answered(const pg_result* result) noexcept;

/// What the server says against a statement; none: it says nothing, and the connection is no good.
std::optional<Failure> failure_of(const pg_result* result);

}  // namespace idem::postgres
