#include "store/store_kind.hpp"

#include "store/sqlite/backup_file.hpp"
#include "store/sqlite/check_file.hpp"
#include "store/sqlite/recover_file.hpp"
#include "store/sqlite/restore_file.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace idem {
namespace {

constexpr std::string_view scheme = "sqlite:";

std::expected<void, std::string> check(const std::string&) { return {}; }

std::expected<std::unique_ptr<Store>, StoreError> open(const std::string& url,
                                                       const IdentitySettings& identity,
                                                       const OpenOptions& options) {
  return open_sqlite(url.substr(scheme.size()), identity,
                     {.migrate = options.migrate,
                      .which = options.which,
                      .opened = options.opened,
                      .warn = options.warn});
}

std::expected<OpenedStore, StoreError> migrate(const std::string& url) {
  OpenedStore migrated;
  SqliteOptions how;
  how.migrate = true;
  how.opened = [&](const OpenedStore& store) { migrated = store; };
  how.as_recorded = true;
  auto opened = open_sqlite(url.substr(scheme.size()), {}, std::move(how));
  if (!opened) return std::unexpected(std::move(opened.error()));
  return migrated;
}

constexpr StoreFileKind file{&sqlite::check_file, &sqlite::look_at_file, &sqlite::backup_file,
                             &sqlite::restore_file, &sqlite::recover_file};

}  // namespace

extern "C" {
extern const StoreKind idem_kind_sqlite;
const StoreKind idem_kind_sqlite{&check, &open, nullptr, &migrate, &file};
}

}  // namespace idem
