#pragma once

#include "core/naming/naming.hpp"

#include <idem/store.hpp>

#include <functional>

namespace idem {

/// The operations of a store's live records.
struct StoredOperations {
  /// Calls `see` with each of them, some perhaps more than once, until it returns false. Returns
  /// false if a record, and so its operation, cannot be read.
  std::function<bool(const std::function<bool(const std::string& operation)>& see)> visit;
};

/// Decides AdoptRoutes: changes `naming` if it adopts a table that differs from the recorded one.
/// Reads the operations only if the new table could hide a record.
AdoptRoutes::Reply adopt(Naming& naming, AdoptRoutes& verb, const StoredOperations& stored);

}  // namespace idem
