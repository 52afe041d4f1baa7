#include <idem/open_store.hpp>

#include "core/store_clock.hpp"
#include "library/hybrid_url.hpp"
#include "store/postgres/postgres_store.hpp"
#include "store/redis/hybrid_store.hpp"
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
  if (is_hybrid_url(url)) return "hybrid:?...";
  return url.substr(0, colon + 1) + (url.substr(colon).starts_with("://") ? "//..." : "");
}

bool marks_dispatch_apart(const std::string& url) { return is_redis_url(url); }

std::expected<void, std::string> check_store_url(const std::string& url) {
  if (url == "memory:" || (url.starts_with(sqlite) && url.size() > sqlite.size())) return {};
  if (is_postgres(url)) return {};
  if (is_hybrid_url(url)) {
    const auto parts = parse_hybrid_url(url);
    if (!parts) return std::unexpected("hybrid: " + parts.error());
    if (!is_postgres(parts->truth) || !is_redis_url(parts->fast)) {
      return std::unexpected("hybrid: its truth is a postgres://... and its fast a redis://...");
    }
    return check_store_url(parts->fast);
  }
  if (is_redis_url(url)) {
    auto known = check_redis_url(url);
    if (!known) known.error() = shown_store_url(url) + ": " + known.error();
    return known;
  }
  return std::unexpected("\"" + shown_store_url(url) +
                         "\" is no store of this version; write sqlite:PATH, "
                         "postgres://USER@HOST/DATABASE, redis://HOST, "
                         "hybrid:?truth=URL&fast=URL or memory:");
}

namespace {

std::expected<std::unique_ptr<Store>, StoreError> open_known(const std::string& url,
                                                             const IdentitySettings& identity,
                                                             const OpenOptions& options) {
  if (url == "memory:") return open_memory(identity);
  if (is_postgres(url)) return open_postgres(url, identity, {.migrate = options.migrate});
  if (is_redis_url(url))
    return open_redis(url, identity, {.clock = moved_server_clock(), .warn = options.warn});
  if (is_hybrid_url(url)) {
    const HybridUrl parts = parse_hybrid_url(url).value();
    auto truth = open_known(parts.truth, identity, options);
    if (!truth) return truth;
    return open_hybrid(std::move(*truth), parts.fast,
                       {.clock = moved_server_clock(), .warn = options.warn});
  }
  SqliteOptions how;
  how.migrate = options.migrate;
  return open_sqlite(url.substr(sqlite.size()), identity, std::move(how));
}

}  // namespace

std::expected<std::unique_ptr<Store>, std::string> open_store(const std::string& url,
                                                              const IdentitySettings& identity,
                                                              const OpenOptions& options) {
  if (const auto known = check_store_url(url); !known) return std::unexpected(known.error());
  auto opened = open_known(url, identity, options);
  if (opened) return std::move(*opened);
  return std::unexpected(shown_store_url(url) + ": " + opened.error().detail);
}

}  // namespace idem
