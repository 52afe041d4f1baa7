#pragma once

#include <idem/store.hpp>

#include <memory>
#include <string>

namespace idem::bench {

/// A prototype that is measured and never shipped: what a log-structured tier would give in place
/// of SQLite. One thread, one file, group commit; a reserve appends the running record, a
/// completion the settled one with its answer; what is where is known in memory. It knows these two
/// verbs, and neither recovery, expiry nor compaction, so what it shows is an upper bound.
std::unique_ptr<Store> open_log_tier(const std::string& path);

}  // namespace idem::bench
