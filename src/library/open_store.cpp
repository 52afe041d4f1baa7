#include <idem/open_store.hpp>

#include "core/store_clock.hpp"
#include "core/which_store.hpp"
#include "library/hybrid_url.hpp"
#include "library/store_url.hpp"
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
  if (url == "memory:" || is_postgres(url)) return {};
  const auto wrong = [&](const std::string& sentence) {
    return std::unexpected("\"" + shown_store_url(url) + "\": " + sentence);
  };
  if (url.starts_with(sqlite)) {
    const auto why = why_no_store_path(std::string_view(url).substr(sqlite.size()));
    if (why) return wrong(*why);
    return {};
  }
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
  if (const auto meant = what_was_meant(url)) return wrong("is no URL of a store; " + *meant);
  return std::unexpected("\"" + shown_store_url(url) +
                         "\" is no store of this version; write sqlite:PATH, "
                         "postgres://USER@HOST/DATABASE, redis://HOST, "
                         "hybrid:?truth=URL&fast=URL or memory:");
}

namespace {

std::expected<std::unique_ptr<Store>, StoreError> open_known(const std::string& url,
                                                             const IdentitySettings& identity,
                                                             const OpenOptions& options) {
  if (url == "memory:") {
    // It begins empty each time.
    if (auto why = why_not(options.which, std::nullopt)) {
      return std::unexpected(StoreError{StoreError::Code::refused, std::move(*why)});
    }
    if (options.opened) options.opened({.place = "memory", .is_new = true});
    return open_memory(identity);
  }
  if (is_postgres(url)) {
    return open_postgres(
        url, identity,
        {.migrate = options.migrate, .which = options.which, .opened = options.opened});
  }
  if (is_redis_url(url)) {
    return open_redis(url, identity,
                      {.clock = moved_server_clock(),
                       .warn = options.warn,
                       .which = options.which,
                       .opened = options.opened});
  }
  if (is_hybrid_url(url)) {
    const HybridUrl parts = parse_hybrid_url(url).value();
    auto truth = open_known(parts.truth, identity, options);
    if (!truth) return truth;
    return open_hybrid(std::move(*truth), parts.fast,
                       {.clock = moved_server_clock(), .warn = options.warn});
  }
  SqliteOptions how;
  how.migrate = options.migrate;
  how.which = options.which;
  how.opened = options.opened;
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

std::expected<OpenedStore, std::string> migrate_store(const std::string& url) {
  if (const auto known = check_store_url(url); !known) return std::unexpected(known.error());
  if (is_hybrid_url(url)) return migrate_store(parse_hybrid_url(url)->truth);
  OpenedStore told;
  const auto hear = [&](const OpenedStore& opened) { told = opened; };
  std::expected<std::unique_ptr<Store>, StoreError> opened;
  if (is_postgres(url)) {
    opened = open_postgres(url, {}, {.migrate = true, .opened = hear, .as_recorded = true});
  } else if (url.starts_with(sqlite)) {
    SqliteOptions how;
    how.migrate = true;
    how.opened = hear;
    how.as_recorded = true;
    opened = open_sqlite(url.substr(sqlite.size()), {}, std::move(how));
  }
  if (opened) return told;
  return std::unexpected(shown_store_url(url) + ": " + opened.error().detail);
}

}  // namespace idem
