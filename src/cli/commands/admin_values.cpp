#include "cli/commands/admin_values.hpp"

#include "cli/settings/units.hpp"
#include "core/bytes/hex.hpp"
#include "core/bytes/rfc3339.hpp"

namespace idem::cli {

std::string why_no_id(const std::string& value) {
  return parse_handle(value) ? "" : value + " is not 32 hexadecimal digits in lower case";
}

std::string why_no_age(const std::string& value) {
  if (parse_rfc3339(value) || parse_duration(value)) return "";
  return value + " is neither an age such as 30m or 24h nor an RFC 3339 time";
}

std::string why_no_time(const std::string& value) {
  return parse_rfc3339(value) ? "" : value + " is no RFC 3339 time such as 2026-01-31T12:00:00Z";
}

}  // namespace idem::cli
