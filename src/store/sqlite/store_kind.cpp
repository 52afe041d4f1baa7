#include "store/store_kind.hpp"

#include "store/sqlite/sqlite_store.hpp"

namespace idem {
namespace {

constexpr std::string_view scheme = "sqlite:";

std::expected<void, std::string> check(const std::string&) { return {}; }

std::expected<std::unique_ptr<Store>, StoreError> open(const std::string& url,
                                                       const IdentitySettings& identity,
                                                       const OpenOptions& options) {
  SqliteOptions how;
  how.migrate = options.migrate;
  return open_sqlite(url.substr(scheme.size()), identity, how);
}

}  // namespace

extern "C" {
extern const StoreKind idem_kind_sqlite;
const StoreKind idem_kind_sqlite{&check, &open, nullptr};
}

}  // namespace idem
