#pragma once

#include <idem/store.hpp>

namespace idem {

/// Why `call` can never be done, whatever the record says: a lease or retention that is not a
/// positive length of time (trap 50), a status that is none, nothing to compare. None for a sound
/// call.
std::optional<std::string> what_is_wrong(const StoreCall& call);

}  // namespace idem
