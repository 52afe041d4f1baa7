#pragma once

#include "core/record/store_clock.hpp"
#include "store/sqlite/connection.hpp"

#include <idem/store.hpp>

#include <optional>
#include <string>

namespace idem::sqlite {

/// The values that outlive every record: identity, fences, clock. Each write is part of the open
/// transaction. Kept by name, so that a later version may add some without a migration.
class Meta {
 public:
  explicit Meta(sqlite3* db);

  std::optional<std::string> text(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name);
  void put_text(std::string_view name, std::string_view value);
  void put_bytes(std::string_view name, std::span<const std::uint8_t> value);
  void put_integer(std::string_view name, std::int64_t value);

  /// The store may have granted every fence up to this one.
  Fence fence_high_water();
  void put_fence_high_water(Fence fence);

  /// Set from the opening to the closing of the file; stays set if the process dies in between.
  bool is_open();
  void put_open(bool is_open);

  std::optional<ClockMark> clock_mark();
  void put_clock_mark(const ClockMark& mark);

 private:
  Statement get_;
  Statement put_;
};

}  // namespace idem::sqlite
