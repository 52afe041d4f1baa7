#pragma once

#include <idem/record.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace idem {

/// RFC 3339 in UTC with milliseconds: "2026-11-21T18:47:28.120Z".
std::string to_rfc3339(StoreTime moment);

/// Any date-time of RFC 3339 §5.6, cut to milliseconds; none for other texts, for dates that the
/// calendar does not have, and for a leap second, which StoreTime cannot express.
std::optional<StoreTime> parse_rfc3339(std::string_view text);

}  // namespace idem
