#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace idem::metrics {

/// Why a value of a request or an answer finds no record.
enum class NotIndexed : std::uint8_t {
  waiting_full,    ///< Too many others waited to be written.
  store_failed,    ///< The store did not answer in all tries.
  value_common,    ///< More records than a search shows have it.
  value_too_long,  ///< See limits::search_value_bytes_max.
  body_too_large,  ///< See limits::search_body_bytes_max.
  body_not_kept,   ///< Of an answer that is not stored.
  body_no_json,
};
inline constexpr std::size_t not_indexed_count = 7;
std::string_view name_of(NotIndexed reason) noexcept;

/// Any thread counts.
class SearchCounts {
 public:
  void turn_on() noexcept { is_on_.store(true, std::memory_order_relaxed); }
  /// It was on at some time, so that there are series.
  bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }

  void add(NotIndexed reason) noexcept {
    reasons_[static_cast<std::size_t>(reason)].fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t count(NotIndexed reason) const noexcept {
    return reasons_[static_cast<std::size_t>(reason)].load(std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> is_on_{false};
  std::array<std::atomic<std::uint64_t>, not_indexed_count> reasons_{};
};

}  // namespace idem::metrics
