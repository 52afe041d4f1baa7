#pragma once

#include "store/store_file.hpp"

#include <idem/open_store.hpp>

#include <expected>
#include <memory>
#include <string>

namespace idem {

/// Opens stores of one kind by URL. Each kind that needs a foreign library defines one, as a symbol
/// (`idem_kind_sqlite`, ...) that its CMake target makes the linker look for. A program that was
/// linked without a kind does not need that kind's library.
struct StoreKind {
  /// Whether its URL can be read; nothing is opened. The error is a sentence without a password.
  std::expected<void, std::string> (*check)(const std::string& url);
  /// Blocks until it is open.
  std::expected<std::unique_ptr<Store>, StoreError> (*open)(const std::string& url,
                                                            const IdentitySettings& identity,
                                                            const OpenOptions& options);
  /// Puts it as a cache in front of `truth`, which decides; null: this kind cannot do that.
  std::expected<std::unique_ptr<Store>, StoreError> (*open_before)(std::unique_ptr<Store> truth,
                                                                   const std::string& url,
                                                                   const OpenOptions& options);
  /// Creates its schema or upgrades it to this version; null: it has none.
  std::expected<OpenedStore, StoreError> (*migrate)(const std::string& url);
  /// Null: it is no file.
  const StoreFileKind* file = nullptr;
};

}  // namespace idem
