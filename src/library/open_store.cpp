#include <idem/open_store.hpp>

#include "store/sqlite/sqlite_store.hpp"
#include "store/stores.hpp"

namespace idem {
namespace {

constexpr std::string_view sqlite = "sqlite:";

}  // namespace

std::expected<void, std::string> check_store_url(const std::string& url) {
  if (url == "memory:" || (url.starts_with(sqlite) && url.size() > sqlite.size())) return {};
  // What follows the scheme may hold a password.
  const auto colon = url.find(':');
  const auto shown = colon == url.npos ? url : url.substr(0, colon + 1);
  return std::unexpected("\"" + shown +
                         "\" is no store of this version; write sqlite:PATH or memory:");
}

std::expected<std::unique_ptr<Store>, std::string> open_store(const std::string& url,
                                                              const IdentitySettings& identity,
                                                              bool migrate) {
  if (const auto known = check_store_url(url); !known) return std::unexpected(known.error());
  std::expected<std::unique_ptr<Store>, StoreError> opened;
  if (url == "memory:") {
    opened = open_memory(identity);
  } else {
    SqliteOptions options;
    options.migrate = migrate;
    opened = open_sqlite(url.substr(sqlite.size()), identity, std::move(options));
  }
  if (!opened) return std::unexpected(url + ": " + opened.error().detail);
  return std::move(*opened);
}

}  // namespace idem
