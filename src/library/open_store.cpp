#include <idem/open_store.hpp>

#include "store/postgres/postgres_store.hpp"
#include "store/redis/redis_store.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store/stores.hpp"

#include <algorithm>

namespace idem {
namespace {

constexpr std::string_view sqlite = "sqlite:";
constexpr std::string_view postgres[] = {"postgres://", "postgresql://"};

bool is_postgres(const std::string& url) {
  return std::ranges::any_of(postgres, [&](auto scheme) { return url.starts_with(scheme); });
}

}  // namespace

std::string shown_store_url(const std::string& url) {
  if (url == "memory:" || url.starts_with(sqlite)) return url;
  const auto colon = url.find(':');
  if (colon == url.npos) return url;
  return url.substr(0, colon + 1) + (url.substr(colon).starts_with("://") ? "//..." : "");
}

bool marks_dispatch_apart(const std::string& url) { return is_redis_url(url); }

std::expected<void, std::string> check_store_url(const std::string& url) {
  if (url == "memory:" || (url.starts_with(sqlite) && url.size() > sqlite.size())) return {};
  if (is_postgres(url)) return {};
  if (is_redis_url(url)) {
    auto known = check_redis_url(url);
    if (!known) known.error() = shown_store_url(url) + ": " + known.error();
    return known;
  }
  return std::unexpected("\"" + shown_store_url(url) +
                         "\" is no store of this version; write sqlite:PATH, "
                         "postgres://USER@HOST/DATABASE, redis://HOST or memory:");
}

std::expected<std::unique_ptr<Store>, std::string> open_store(const std::string& url,
                                                              const IdentitySettings& identity,
                                                              const OpenOptions& options) {
  if (const auto known = check_store_url(url); !known) return std::unexpected(known.error());
  std::expected<std::unique_ptr<Store>, StoreError> opened;
  if (url == "memory:") {
    opened = open_memory(identity);
  } else if (is_postgres(url)) {
    opened = open_postgres(url, identity, {.migrate = options.migrate});
  } else if (is_redis_url(url)) {
    opened = open_redis(url, identity, {.warn = options.warn});
  } else {
    SqliteOptions how;
    how.migrate = options.migrate;
    opened = open_sqlite(url.substr(sqlite.size()), identity, std::move(how));
  }
  if (opened) return std::move(*opened);
  return std::unexpected(shown_store_url(url) + ": " + opened.error().detail);
}

}  // namespace idem
