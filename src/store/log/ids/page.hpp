#pragma once

#include "core/bytes/checksum.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace idem::segments {

/// Files of the table of ids consist of pages, each with a checksum at its end over its bytes, the
/// file's tag and its own number: so no page can stand for another one. Small ones, as a look for
/// an id copies one and checks it.
inline constexpr std::size_t page_bytes = 1024;
inline constexpr std::size_t page_payload = page_bytes - checksum_bytes;

/// Writes the checksum of the page at `page`.
void seal_page(char* page, std::uint64_t tag, std::uint64_t index) noexcept;

/// Reads `count` pages from the one at `index` on. False: they are damaged, or missing.
bool read_pages(int descriptor, std::uint64_t tag, std::uint64_t index, std::size_t count,
                char* into) noexcept;

/// Writes pages one behind the other, many at once. Used by one thread.
class PageWriter {
 public:
  /// The first one goes to `index`. Does not own the descriptor.
  PageWriter(int descriptor, std::uint64_t tag, std::uint64_t index);

  /// The next page, all zeros, to be filled before the next call.
  char* next_page();
  /// How many next_page() has returned.
  std::uint64_t count() const noexcept { return count_; }
  /// Writes what is left.
  void flush();
  /// Zero, or the first error: an errno. Nothing is written behind one.
  int error() const noexcept { return error_; }

 private:
  void start_writing();

  int descriptor_;
  std::uint64_t tag_;
  std::uint64_t first_;
  std::uint64_t count_ = 0;
  std::string pages_;  ///< The last ones, not written yet.
  std::uint64_t started_to_ = 0;
  int error_ = 0;
};

}  // namespace idem::segments
