#pragma once

#include "http/head.hpp"

#include <string_view>
#include <vector>

/// Logins of connections. NTLM, Negotiate and their kin authenticate a connection and not a request
/// (RFC 4559 §6; [MS-NTHT]): the sender of the next request over it is its user, without
/// credentials. So a connection that may have such a user carries no request of another caller.
namespace idem::http {

/// True where the credentials of a request are of that kind. `head`: as it goes out, CRLF after
/// each line.
bool logs_in_connection(std::string_view head) noexcept;
/// The same by the fields of a request.
bool carries_connection_login(const std::vector<FieldView>& fields) noexcept;
/// True where an answer asks for such a login, or is a part of one.
bool logs_in_connection(const std::vector<FieldView>& fields) noexcept;

}  // namespace idem::http
