#include <idem/open_store.hpp>

#include "store/sqlite/sqlite_store.hpp"
#include "store/stores.hpp"

namespace idem {

std::expected<std::unique_ptr<Store>, std::string> open_store(const std::string& url,
                                                              const IdentitySettings& identity,
                                                              bool migrate) {
  static constexpr std::string_view sqlite = "sqlite:";
  std::expected<std::unique_ptr<Store>, StoreError> opened;
  if (url == "memory:") {
    opened = open_memory(identity);
  } else if (url.starts_with(sqlite) && url.size() > sqlite.size()) {
    SqliteOptions options;
    options.migrate = migrate;
    opened = open_sqlite(url.substr(sqlite.size()), identity, std::move(options));
  } else {
    return std::unexpected("\"" + url +
                           "\" is no store of this version; write sqlite:PATH or memory:");
  }
  if (!opened) return std::unexpected(url + ": " + opened.error().detail);
  return std::move(*opened);
}

}  // namespace idem
