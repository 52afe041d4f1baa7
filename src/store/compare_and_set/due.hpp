#pragma once

#include <idem/store.hpp>

#include <expected>
#include <vector>

namespace idem::compare_and_set {

/// The lists by which a store finds records that have something to do.
enum class Work : std::uint8_t { sweep, reap, claim };

struct Due {
  StoreTime at;
  RecordId id;
};
using DueResult = std::expected<std::vector<Due>, StoreError>;

}  // namespace idem::compare_and_set
