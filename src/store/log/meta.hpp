#pragma once

#include "core/record/store_clock.hpp"
#include "store/log/database.hpp"
#include "store/store_identity.hpp"

namespace idem::segments {

/// What the store knows of all of its records.
struct Counts {
  std::int64_t last_number = 0;             ///< No line of evidence has a higher one.
  std::array<std::uint64_t, 7> by_state{};  ///< Of the settled ones.
};
/// The error is a sentence.
std::expected<Counts, std::string> read_counts(Database& db);
void write_counts(Database& db, const Counts& counts);

/// The values of `meta`; each has a checksum over its name, too. None: there is no such value.
class Meta {
 public:
  explicit Meta(Database& db) : db_(db) {}

  using Value = std::expected<std::optional<std::string>, std::string>;
  Value read(std::string_view name);
  void write(std::string_view name, std::string_view value);

  std::expected<std::optional<std::uint64_t>, std::string> number(std::string_view name);
  void put_number(std::string_view name, std::uint64_t value);

  std::expected<std::optional<ClockMark>, std::string> clock_mark();
  void put_clock_mark(const ClockMark& mark);

  std::expected<std::optional<StoreIdentity>, std::string> identity();
  void put_identity(const StoreIdentity& identity);

 private:
  Database& db_;
};

/// With the generation, as part of the identity.
void save_naming(Database& db, const Naming& naming);

inline constexpr std::string_view meta_fences = "fences";
inline constexpr std::string_view meta_open = "open";

}  // namespace idem::segments
