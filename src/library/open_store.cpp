#include <idem/open_store.hpp>

#include "store/postgres/postgres_store.hpp"
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

/// What may be shown of a URL: what follows the scheme may hold a password.
std::string shown(const std::string& url) {
  const auto colon = url.find(':');
  return colon == url.npos ? url : url.substr(0, colon + 1);
}

}  // namespace

std::expected<void, std::string> check_store_url(const std::string& url) {
  if (url == "memory:" || (url.starts_with(sqlite) && url.size() > sqlite.size())) return {};
  if (is_postgres(url)) return {};
  return std::unexpected("\"" + shown(url) +
                         "\" is no store of this version; write sqlite:PATH, "
                         "postgres://USER@HOST/DATABASE or memory:");
}

std::expected<std::unique_ptr<Store>, std::string> open_store(const std::string& url,
                                                              const IdentitySettings& identity,
                                                              bool migrate) {
  if (const auto known = check_store_url(url); !known) return std::unexpected(known.error());
  std::expected<std::unique_ptr<Store>, StoreError> opened;
  if (url == "memory:") {
    opened = open_memory(identity);
  } else if (is_postgres(url)) {
    opened = open_postgres(url, identity, {.migrate = migrate});
  } else {
    SqliteOptions options;
    options.migrate = migrate;
    opened = open_sqlite(url.substr(sqlite.size()), identity, std::move(options));
  }
  if (opened) return std::move(*opened);
  const std::string name = is_postgres(url) ? std::string("postgres://...") : url;
  return std::unexpected(name + ": " + opened.error().detail);
}

}  // namespace idem
