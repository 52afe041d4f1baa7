#pragma once

#include "core/record/store_clock.hpp"
#include "store/sqlite/connection.hpp"

#include <idem/store.hpp>

#include <optional>
#include <string>

namespace idem::sqlite {

/// The values that outlive every record: identity, fences, clock. Each write is part of the open
/// transaction. Kept by name, so that a later version may add some without a migration.
///
/// Each value has a checksum, because one damaged bit here concerns all records: another secret or
/// another clock would let every key run again.
class Meta {
 public:
  static constexpr std::string_view saved_log_name = "saved_log";
  static constexpr std::string_view log_number_name = "log_number";
  static constexpr std::string_view log_began_name = "log_began";
  static constexpr std::string_view schema_checksum_name = "schema_checksum";

  explicit Meta(sqlite3* db);

  /// The first schema version in which all values have checksums.
  static constexpr std::int64_t first_version_with_checksums = 3;
  /// For files of older versions, once: gives each value its checksum.
  void add_checksums();
  /// A part of a sentence: the damaged or missing value. None: all are as they were written.
  std::optional<std::string> what_is_damaged();

  std::optional<std::string> text(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name);
  void put_text(std::string_view name, std::string_view value);
  void put_bytes(std::string_view name, std::span<const std::uint8_t> value);
  void put_integer(std::string_view name, std::int64_t value);

  /// After each change of one of these tables: keeps its checksum.
  void digest_secrets_changed();
  void route_names_changed();

  /// The store may have granted every fence up to this one.
  Fence fence_high_water();
  void put_fence_high_water(Fence fence);

  /// Set from the opening to the closing of the file; stays set if the process dies in between.
  bool is_open();
  void put_open(bool is_open);

  /// All of the log is in the file, because the log is gone from its path.
  bool has_saved_log();
  void put_saved_log(bool is_saved);

  /// The number of the log grows with its first commit and with each one that finds it due to go
  /// into the file, and the log keeps the first of its own. So a log belongs to a file if it knows
  /// no lower number than the file does, and began at most one later.
  void begin_log();
  void count_log();

  std::optional<ClockMark> clock_mark();
  void put_clock_mark(const ClockMark& mark);

 private:
  void put(std::string_view name);

  sqlite3* db_;
  Statement get_;
  Statement put_;
};

}  // namespace idem::sqlite
