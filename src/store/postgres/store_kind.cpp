#include "store/store_kind.hpp"

#include "store/postgres/postgres_store.hpp"

namespace idem {
namespace {

std::expected<void, std::string> check(const std::string&) { return {}; }

std::expected<std::unique_ptr<Store>, StoreError> open(const std::string& url,
                                                       const IdentitySettings& identity,
                                                       const OpenOptions& options) {
  return open_postgres(url, identity, {.migrate = options.migrate});
}

}  // namespace

extern "C" {
extern const StoreKind idem_kind_postgres;
const StoreKind idem_kind_postgres{&check, &open, nullptr};
}

}  // namespace idem
