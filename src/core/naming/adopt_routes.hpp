#pragma once

#include "core/naming/naming.hpp"

#include <idem/store.hpp>

#include <functional>

namespace idem {

/// What a store knows about the operations of its live records.
struct StoredOperations {
  /// Shows each of them, some perhaps more than once, until `see` answers false. False: a record
  /// cannot be read, and nobody knows its operation.
  std::function<bool(const std::function<bool(const std::string& operation)>& see)> visit;
};

/// AdoptRoutes, decided: `naming` is changed where the table is adopted and is another one than the
/// recorded. Looks at the operations only where that could hide a record.
AdoptRoutes::Reply adopt(Naming& naming, AdoptRoutes& verb, const StoredOperations& stored);

}  // namespace idem
