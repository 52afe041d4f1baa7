#pragma once

#include <idem/open_store.hpp>

#include <expected>
#include <memory>
#include <string>

namespace idem {

/// How stores of one kind are opened by URL. Each kind that needs a foreign library has one, as a
/// symbol (`idem_kind_sqlite`, `idem_kind_postgres`, `idem_kind_redis`) that its CMake target has
/// the linker look for. What a program was not linked with is not there, and needs no library.
struct StoreKind {
  /// Whether its URL can be read; nothing is opened. The error is a sentence without a password.
  std::expected<void, std::string> (*check)(const std::string& url);
  /// Blocks until it is open.
  std::expected<std::unique_ptr<Store>, StoreError> (*open)(const std::string& url,
                                                            const IdentitySettings& identity,
                                                            const OpenOptions& options);
  /// Puts it in front of one that decides; null: it is not fit for that.
  std::expected<std::unique_ptr<Store>, StoreError> (*open_before)(std::unique_ptr<Store> truth,
                                                                   const std::string& url,
                                                                   const OpenOptions& options);
  /// Brings its schema to this version, or makes it; null: it has none.
  std::expected<OpenedStore, StoreError> (*migrate)(const std::string& url);
};

}  // namespace idem
