#pragma once

#include <idem/store.hpp>

namespace idem {

/// Why no record allows `call`: a lease or retention that is not a positive length of time (T50),
/// an invalid status, no fingerprint. None for a valid call.
std::optional<std::string> what_is_wrong(const StoreCall& call);

}  // namespace idem
