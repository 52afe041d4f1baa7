#pragma once

#include "admin/keys_json.hpp"
#include "loop/loop.hpp"

#include <idem/store.hpp>

#include <expected>
#include <map>
#include <set>
#include <string>

namespace idem::admin {

/// Records that had a value when it was indexed, and what it is to each. A record may be gone
/// since.
struct FoundRecords {
  std::map<RecordId, std::set<std::string>> records{};
  Searched searched{};
};

/// Reads what the gateways have indexed under this value: two calls of the store for each day on
/// which records are forgotten, however many records it holds. An id of a trace is found in any
/// case of its letters, and in its traceparent. Of the loop's thread.
Task<std::expected<FoundRecords, StoreError>> search(Loop& loop, Store& store,
                                                     const std::string& value);

}  // namespace idem::admin
