#pragma once

#include <string_view>

namespace idem::http {

/// Two field names that a server may take for one, because it puts `_` for `-` or drops what is no
/// letter or digit (CGI's HTTP_X_TENANT_ID is both X-Tenant-Id and X_Tenant_Id).
bool alike(std::string_view a, std::string_view b) noexcept;

}  // namespace idem::http
