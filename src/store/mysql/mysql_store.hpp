#pragma once

#include <idem/open_store.hpp>

#include <expected>
#include <functional>
#include <memory>
#include <string>

namespace idem {

struct MysqlOptions {
  /// Upgrade an older schema instead of refusing it. An empty database always gets the schema.
  bool migrate = true;
  std::function<void(const std::string&)> warn{};  ///< A sentence; on the store's thread.
  WhichStore which{};
  std::function<void(const OpenedStore&)> opened{};  ///< On the store's thread.
  /// For an upgrade: open an existing store without settings. Nothing may be reserved then.
  bool as_recorded = false;
};

/// Opens the shared store in a database of MariaDB or MySQL: `mysql://USER@HOST,HOST/DATABASE`.
std::expected<std::unique_ptr<Store>, StoreError> open_mysql(const std::string& url,
                                                             const IdentitySettings& settings,
                                                             const MysqlOptions& options);

/// Parses the URL without connecting. The error is a sentence without a password.
std::expected<void, std::string> check_mysql_url(const std::string& url);

}  // namespace idem
