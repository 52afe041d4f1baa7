#pragma once

#include "store/embedded/name_locks.hpp"
#include "store/embedded/over_shards.hpp"

namespace idem::embedded {

/// Makes the reserves of a store with several shards. One whose names all belong to one shard is a
/// call of that shard. One under names of several shards (former names, older secrets) looks for
/// records in all of them, and then reserves the one that counts, or makes it under its first name;
/// meanwhile no other reserve has any of these names. Any thread may use it.
class Reserving {
 public:
  explicit Reserving(Shards shards) : shards_(shards) {}

  /// `call` is a Reserve or an Accept.
  void reserve(StoreCall call, StoreCompletion done);

 private:
  Shards shards_;
  NameLocks locks_;
};

}  // namespace idem::embedded
