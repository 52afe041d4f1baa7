#include "store/store_kind.hpp"

#include "store/mysql/mysql_store.hpp"

namespace idem {
namespace {

std::expected<std::unique_ptr<Store>, StoreError> open(const std::string& url,
                                                       const IdentitySettings& identity,
                                                       const OpenOptions& options) {
  return open_mysql(url, identity,
                    {.migrate = options.migrate,
                     .warn = options.warn,
                     .which = options.which,
                     .opened = options.opened});
}

std::expected<OpenedStore, StoreError> migrate(const std::string& url) {
  OpenedStore migrated;
  const auto note = [&](const OpenedStore& store) { migrated = store; };
  auto opened = open_mysql(url, {}, {.migrate = true, .opened = note, .as_recorded = true});
  if (!opened) return std::unexpected(std::move(opened.error()));
  return migrated;
}

}  // namespace

extern "C" {
extern const StoreKind idem_kind_mysql;
const StoreKind idem_kind_mysql{&check_mysql_url, &open, nullptr, &migrate};
}

}  // namespace idem
