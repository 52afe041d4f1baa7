#pragma once

#include <idem/store.hpp>

namespace idem {

/// Why no record allows `call`: a lease or retention that is not a positive length of time (T50),
/// an invalid status, no fingerprint. None for a valid call.
std::optional<std::string> what_is_wrong(const StoreCall& call);

/// A fence of 0 is never granted, so a verb with it names no attempt: it counts as one without a
/// fence. As a fence of another attempt it would make an owner's completion stale, and keep
/// positive evidence from contesting the record.
void drop_zero_fence(StoreCall& call) noexcept;

}  // namespace idem
