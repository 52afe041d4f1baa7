#include "store/sqlite/meta.hpp"

#include "core/bytes/checksum.hpp"

#include <array>
#include <bit>
#include <utility>
#include <vector>

namespace idem::sqlite {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view secrets_checksum = "digest_secrets_checksum";
constexpr std::string_view routes_checksum = "route_names_checksum";

/// Those of every store that was opened once.
constexpr std::array needed{"secret"sv,        "store_id"sv,         "generation"sv,
                            "key_scope"sv,     "scope_source"sv,     "key_fields"sv,
                            "open"sv,          "fence_high_water"sv, "clock_store_ms"sv,
                            "clock_boot_id"sv, "clock_uptime_ms"sv,  secrets_checksum,
                            routes_checksum};

/// The value in column `at` with its type, so that one cannot pass for the other.
std::string typed_value(Statement& row, int at) {
  std::string value(1, row.type(at));
  value += row.bytes(at);
  return value;
}

std::int64_t checksum_of_value(std::string_view name, std::string_view typed_value) {
  return std::bit_cast<std::int64_t>(checksum_of(RecordId{}, name, typed_value));
}

/// Over all values of the rows, in their order.
std::int64_t checksum_of_rows(sqlite3* db, std::string_view sql) {
  Statement rows(db, sql);
  std::string all;
  while (rows.step()) {
    for (int at = 0; at < rows.columns(); ++at) {
      const std::string value = typed_value(rows, at);
      all += std::to_string(value.size()) + ':' + value;
    }
  }
  return checksum_of_value(sql, all);
}

constexpr std::string_view all_secrets =
    "SELECT generation, id FROM idem_digest_secrets ORDER BY generation";
constexpr std::string_view all_routes =
    "SELECT position, methods, pattern, name, formerly FROM idem_route_names ORDER BY position";

}  // namespace

Meta::Meta(sqlite3* db)
    : db_(db),
      get_(db, "SELECT value FROM idem_meta WHERE name = ?1"),
      put_(db,
           "INSERT INTO idem_meta (name, value, checksum) VALUES (?1, ?2, ?3)"
           " ON CONFLICT (name) DO UPDATE SET value = ?2, checksum = ?3") {}

void Meta::add_checksums() {
  std::vector<std::pair<std::string, std::int64_t>> sums;
  Statement rows(db_, "SELECT name, value FROM idem_meta");
  while (rows.step()) {
    std::string name(rows.bytes(0));
    const std::int64_t sum = checksum_of_value(name, typed_value(rows, 1));
    sums.emplace_back(std::move(name), sum);
  }
  Statement add(db_, "UPDATE idem_meta SET checksum = ?2 WHERE name = ?1");
  for (const auto& [name, sum] : sums) {
    add.bind_text(1, name);
    add.bind(2, sum);
    add.run();
  }
}

std::optional<std::string> Meta::what_is_damaged() {
  Statement rows(db_, "SELECT name, value, checksum FROM idem_meta");
  while (rows.step()) {
    const std::string name(rows.bytes(0));
    const std::int64_t sum = checksum_of_value(name, typed_value(rows, 1));
    if (!rows.is_null(2) && rows.integer(2) == sum) continue;
    rows.reset();
    return "the value '" + name + "' in idem_meta does not match its checksum";
  }
  for (const std::string_view name : needed) {
    if (!text(name)) return "the value '" + std::string(name) + "' in idem_meta is missing";
  }
  if (integer(secrets_checksum) != checksum_of_rows(db_, all_secrets)) {
    return "the rows of idem_digest_secrets do not match their checksum";
  }
  if (integer(routes_checksum) != checksum_of_rows(db_, all_routes)) {
    return "the rows of idem_route_names do not match their checksum";
  }
  return std::nullopt;
}

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
  put_.bind_text(2, value);
  put_.bind(3, checksum_of_value(name, Statement::text_type + std::string(value)));
  put(name);
}

void Meta::put_bytes(std::string_view name, std::span<const std::uint8_t> value) {
  std::string typed(1, Statement::blob_type);
  typed.append(reinterpret_cast<const char*>(value.data()), value.size());
  put_.bind_bytes(2, value);
  put_.bind(3, checksum_of_value(name, typed));
  put(name);
}

void Meta::put_integer(std::string_view name, std::int64_t value) {
  put_.bind(2, value);
  put_.bind(3, checksum_of_value(name, Statement::integer_type + std::to_string(value)));
  put(name);
}

void Meta::put(std::string_view name) {
  put_.bind_text(1, name);
  put_.run();
}

void Meta::digest_secrets_changed() {
  put_integer(secrets_checksum, checksum_of_rows(db_, all_secrets));
}

void Meta::route_names_changed() {
  put_integer(routes_checksum, checksum_of_rows(db_, all_routes));
}

Fence Meta::fence_high_water() {
  return static_cast<Fence>(integer("fence_high_water").value_or(0));
}

void Meta::put_fence_high_water(Fence fence) {
  put_integer("fence_high_water", static_cast<std::int64_t>(fence));
}

bool Meta::is_open() { return integer("open").value_or(0) != 0; }

void Meta::put_open(bool is_open) { put_integer("open", is_open ? 1 : 0); }

bool Meta::has_saved_log() { return integer(saved_log_name).value_or(0) != 0; }

void Meta::put_saved_log(bool is_saved) { put_integer(saved_log_name, is_saved ? 1 : 0); }

void Meta::begin_log() {
  count_log();
  put_integer(log_began_name, integer(log_number_name).value_or(0));
}

void Meta::count_log() { put_integer(log_number_name, integer(log_number_name).value_or(0) + 1); }

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
