#pragma once

#include "core/record/stored_fence.hpp"
#include "store/postgres/connection.hpp"

#include <idem/store.hpp>

#include <string>
#include <string_view>

/// Cells of a row as the values of the store port.
namespace idem::postgres {

/// Reads the cells of one row, from left to right.
class Cells {
 public:
  Cells(const Rows& rows, int row, int column = 0) : rows_(rows), row_(row), column_(column) {}

  bool is_null() const noexcept { return rows_.is_null(row_, column_); }
  void skip() noexcept { ++column_; }
  std::string_view bytes() noexcept { return rows_.cell(row_, column_++); }
  std::string text() { return from_text(bytes()); }
  bool boolean() noexcept { return to_boolean(bytes()); }
  std::int64_t number() noexcept { return to_number(bytes()); }
  Millis millis() noexcept { return Millis(number()); }
  StoreTime moment() noexcept { return to_moment(bytes()); }
  std::optional<Fence> fence() noexcept { return fence_from(static_cast<std::uint64_t>(number())); }
  RecordId id() noexcept { return {to_uuid(bytes())}; }
  std::optional<Millis> optional_millis();
  std::optional<StoreTime> optional_moment();
  /// State{} if the cell is null or names no state.
  State state() noexcept { return state_of(bytes()); }

  static State state_of(std::string_view name) noexcept;

 private:
  const Rows& rows_;
  int row_;
  int column_;
};

inline constexpr std::string_view answer_differs = "its answer is not the one that was stored";
inline constexpr std::string_view record_contradicts =
    "its state, its times and its answer contradict each other";
inline constexpr std::string_view request_differs = "its request is not the one that was accepted";
StoreError damaged(std::string_view why, std::optional<RecordId> record = {});

/// The stored form of fingerprints, joined.
std::string bytes_of(const std::vector<Fingerprint>& fingerprints);

/// The columns of idem.slots that to_record() reads; `request` is the expression for the stored
/// request.
std::string record_columns(std::string_view request);
/// Reads a record without its answer, but with the answer's status; leaves `cells` behind it.
std::expected<Record, StoreError> to_record(Cells& cells);

}  // namespace idem::postgres
