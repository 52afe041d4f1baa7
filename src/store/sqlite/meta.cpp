#include "store/sqlite/meta.hpp"

#include <idem/fingerprint.hpp>

#include <algorithm>

namespace idem::sqlite {
namespace {

std::expected<void, std::string> same_setting(std::string_view name, const std::string& recorded,
                                              const std::string& asked) {
  if (recorded == asked) return {};
  return std::unexpected(
      std::string(name) + " is '" + recorded + "' since the first start, and '" + asked +
      "' was asked for: every key would be looked up under another name" + " and run again");
}

}  // namespace

Meta::Meta(sqlite3* db)
    : get_(db, "SELECT value FROM meta WHERE name = ?1"),
      put_(db, "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2") {}

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

void Meta::create_identity(const IdentitySettings& settings) {
  Secret secret;
  random_bytes(secret);
  put_bytes("secret", secret);
  put_integer("generation", 1);
  put_text("key_scope", settings.key_scope);
  put_text("scope_source", settings.scope_source);
}

std::expected<Identity, std::string> Meta::check_identity(const IdentitySettings& asked) {
  const auto secret = text("secret");
  const auto generation = integer("generation");
  const auto key_scope = text("key_scope");
  const auto scope_source = text("scope_source");
  Identity identity;
  if (!secret || secret->size() != identity.secret.size() || !generation || *generation < 1 ||
      !key_scope || !scope_source) {
    return std::unexpected("its identity is damaged: without the secret no record can be found");
  }
  auto same = same_setting("key_scope", *key_scope, asked.key_scope);
  if (same) same = same_setting("scope_source", *scope_source, asked.scope_source);
  if (!same) return std::unexpected(std::move(same.error()));
  std::ranges::transform(*secret, identity.secret.begin(),
                         [](char c) { return static_cast<std::uint8_t>(c); });
  identity.generation = static_cast<std::uint64_t>(*generation);
  return identity;
}

}  // namespace idem::sqlite
