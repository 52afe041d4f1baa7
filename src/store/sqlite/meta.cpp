#include "store/sqlite/meta.hpp"

namespace idem::sqlite {
Meta::Meta(sqlite3* db)
    : get_(db, "SELECT value FROM idem_meta WHERE name = ?1"),
      put_(db,
           "INSERT INTO idem_meta VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2") {}

std::optional<std::string> Meta::text(std::string_view name) {
  get_.bind_text(1, name);
  if (!get_.step()) return std::nullopt;
  const RowsEnd end(get_);
  return std::string(get_.bytes(0));
}

std::optional<std::int64_t> Meta::integer(std::string_view name) {
  get_.bind_text(1, name);
  if (!get_.step()) return std::nullopt;
  const RowsEnd end(get_);
  return get_.integer(0);
}

void Meta::put_text(std::string_view name, std::string_view value) {
  put_.bind_text(1, name);
  put_.bind_text(2, value);
  put_.run();
}

void Meta::put_bytes(std::string_view name, std::span<const std::uint8_t> value) {
  put_.bind_text(1, name);
  put_.bind_bytes(2, value);
  put_.run();
}

void Meta::put_integer(std::string_view name, std::int64_t value) {
  put_.bind_text(1, name);
  put_.bind(2, value);
  put_.run();
}

Fence Meta::fence_high_water() {
  return static_cast<Fence>(integer("fence_high_water").value_or(0));
}

void Meta::put_fence_high_water(Fence fence) {
  put_integer("fence_high_water", static_cast<std::int64_t>(fence));
}

bool Meta::is_open() { return integer("open").value_or(0) != 0; }

void Meta::put_open(bool is_open) { put_integer("open", is_open ? 1 : 0); }

std::optional<ClockMark> Meta::clock_mark() {
  const auto store = integer("clock_store_ms");
  const auto uptime = integer("clock_uptime_ms");
  auto boot_id = text("clock_boot_id");
  if (!store || !uptime || !boot_id) return std::nullopt;
  return ClockMark{StoreTime(Millis(*store)), Millis(*uptime), std::move(*boot_id)};
}

void Meta::put_clock_mark(const ClockMark& mark) {
  put_integer("clock_store_ms", mark.store.time_since_epoch().count());
  put_integer("clock_uptime_ms", mark.uptime.count());
  put_text("clock_boot_id", mark.boot_id);
}

}  // namespace idem::sqlite
