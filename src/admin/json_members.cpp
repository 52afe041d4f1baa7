#include "admin/json_members.hpp"

#include "core/bytes/rfc3339.hpp"

#include <algorithm>

namespace idem::admin {

void write_moment(json::Writer& out, std::string_view name,
                  const std::optional<StoreTime>& moment) {
  write_text_or_null(out, name, moment ? to_rfc3339(*moment) : "");
}

void write_text_or_null(json::Writer& out, std::string_view name, std::string_view text) {
  out.name(name);
  if (text.empty()) return out.null();
  out.text(text);
}

std::int64_t seconds_of(Millis time) { return std::max<std::int64_t>(time.count(), 0) / 1'000; }

}  // namespace idem::admin
