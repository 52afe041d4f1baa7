#pragma once

#include "http/loop.hpp"

#include <idem/store.hpp>

namespace idem::http {

/// Asks the store and resumes the calling coroutine on its own loop with the reply. The replies of
/// one commit reach a loop by one wake-up. `call` is moved from.
Task<StoreResult> ask_store(Loop& loop, Store& store, StoreCall& call);

}  // namespace idem::http
