#include "store/postgres/lineage.hpp"

#include "store/postgres/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace idem::postgres {

// The name of the current WAL file has the timeline. The control file has that of the last
// checkpoint, which comes later than a promotion.
const char* const server_history_sql =
    "SELECT c.system_identifier, pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn())"
    " FROM pg_catalog.pg_control_system() c";

ServerHistory history_of(const QueryResult& reply, std::optional<Fence> fence) {
  ServerHistory history{.fence = fence};
  if (!reply || reply->size() != 1) return history;
  Cells cells(*reply, 0);
  history.system = cells.number();
  // Its first eight digits, in hex.
  const auto file = cells.bytes().substr(0, 8);
  std::from_chars(file.data(), file.data() + file.size(), history.timeline, 16);
  return history;
}

std::optional<Fence> Lineage::known_fence() const {
  const std::lock_guard lock(mutex_);
  return highest_.fence;
}

std::int64_t Lineage::timeline() const {
  const std::lock_guard lock(mutex_);
  return highest_.timeline;
}

void Lineage::note(Fence fence) {
  const std::lock_guard lock(mutex_);
  highest_.fence = std::max(highest_.fence, std::optional(fence));
}

void Lineage::note(const StoreResult& result) {
  if (!result) return;
  if (const auto* outcome = std::get_if<ReserveOutcome>(&*result)) {
    if (const auto* granted = std::get_if<Execute>(outcome)) note(granted->attempt.fence);
  } else if (const auto* claimed = std::get_if<std::optional<Claimed>>(&*result)) {
    if (*claimed) note((*claimed)->attempt.fence);
  }
}

std::optional<std::string> Lineage::why_refused(const ServerHistory& server,
                                                std::optional<Fence> known) {
  const std::lock_guard lock(mutex_);
  if (server.system != 0 && highest_.system != 0 && server.system != highest_.system) {
    return fmt::format(
        "the server is of another cluster (system identifier {}, it was {}): the records of the "
        "one "
        "before may be missing; if they are there, start the gateway again",
        server.system, highest_.system);
  }
  if (server.timeline != 0 && server.timeline < highest_.timeline) {
    return fmt::format(
        "the server is on timeline {}, and the store was on timeline {} already: it is a deposed "
        "primary, and lacks all that was written since; make it a standby of the new one",
        server.timeline, highest_.timeline);
  }
  if (server.fence && server.fence < known) {
    return fmt::format(
        "the server's last fence is {}, and {} was given out already: it has lost the last "
        "records, "
        "so that work could run again; find out what is missing before you start the gateway again",
        *server.fence, *known);
  }
  if (server.system != 0) highest_.system = server.system;
  highest_.timeline = std::max(highest_.timeline, server.timeline);
  highest_.fence = std::max(highest_.fence, server.fence);
  return std::nullopt;
}

}  // namespace idem::postgres
