#pragma once

#include "store/postgres/statements.hpp"

namespace idem::postgres {

/// The statement of a PutRecord.
Statement ask_put(const PutRecord& verb);

}  // namespace idem::postgres
