#include "admin/json_members.hpp"

#include "core/bytes/rfc3339.hpp"

namespace idem::admin {

void write_moment(json::Writer& out, std::string_view name,
                  const std::optional<StoreTime>& moment) {
  out.name(name);
  if (moment) {
    out.text(to_rfc3339(*moment));
  } else {
    out.null();
  }
}

}  // namespace idem::admin
