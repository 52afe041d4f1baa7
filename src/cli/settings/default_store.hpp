#pragma once

#include "config/given.hpp"

namespace idem::cli {

/// `store` is the default, with an absolute path. A SQLite file in its folder, where the default
/// was in earlier versions, is the store instead: a start must not make an empty one beside the
/// records. Both are refused, because nobody but the operator knows which of them is in use.
void settle_default_store(config::Given& store, config::Complaints& complaints);

}  // namespace idem::cli
