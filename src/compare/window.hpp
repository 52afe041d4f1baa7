#pragma once

#include <idem/worker_limits.hpp>
#include "compare/export_reader.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace idem::compare {

/// The part of an export that is being read: it begins where the present line does, grows while
/// that is looked at, and forgets it once it was taken.
class Window {
 public:
  explicit Window(ReadBytes bytes) : bytes_(std::move(bytes)) {}

  static constexpr int end = -1;

  /// Forgets a byte order mark, with which UTF-8 may begin.
  void take_byte_order_mark() {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    std::size_t count = 0;
    while (count < mark.size() && at(count) == static_cast<unsigned char>(mark[count])) ++count;
    if (count == mark.size()) take(count);
  }

  /// The byte so far behind the line's beginning; `end` where there is none.
  int at(std::size_t offset) {
    while (from_ + offset >= text_.size()) {
      if (!fill()) return end;
    }
    return static_cast<unsigned char>(text_[from_ + offset]);
  }
  /// The offset of the first of these bytes from `offset` on, or of the end; it looks no further
  /// than `offset_max`.
  std::size_t find(std::string_view any, std::size_t offset, std::size_t offset_max) {
    while (at(offset) != end && offset <= offset_max) {
      const auto found = text_.find_first_of(any, from_ + offset);
      if (found != text_.npos) return found - from_;
      offset = text_.size() - from_;
    }
    return offset;
  }
  std::string_view text(std::size_t offset, std::size_t count) const {
    return std::string_view(text_).substr(from_ + offset, count);
  }
  /// The line in which the window begins.
  std::uint64_t line() const noexcept { return line_; }
  /// Where a byte lies.
  BadLine place(std::size_t offset, std::string what) const {
    const auto before = text(0, offset);
    const auto lines = std::ranges::count(before, '\n');
    const auto last = before.rfind('\n');
    const std::size_t column = last == before.npos ? offset : offset - last - 1;
    return {line_ + static_cast<std::uint64_t>(lines), column + 1, std::move(what)};
  }
  /// Forgets so many bytes.
  void take(std::size_t count) {
    line_ += static_cast<std::uint64_t>(std::ranges::count(text(0, count), '\n'));
    from_ += count;
    if (from_ == text_.size()) {
      text_.clear();
      from_ = 0;
    }
  }
  /// Forgets all up to the next end of a line behind `offset`.
  void take_line_behind(std::size_t offset) {
    take(offset);
    for (;;) {
      const std::size_t found = find("\n", 0, limits::export_line_bytes_max);
      if (at(found) == end || at(found) == '\n') {
        take(at(found) == end ? found : found + 1);
        return;
      }
      take(found);
    }
  }
  /// Once there are no more bytes: the last line, where nothing ends it. What was cut there has
  /// perhaps lost more than its end.
  std::optional<BadLine> last_line_cut() const {
    if (last_ == '\n') return std::nullopt;
    return BadLine{line_, 0, "nothing ends the last line; it may be cut", true};
  }
  /// Why reading ended early; empty where it did not.
  const std::string& trouble() const noexcept { return trouble_; }

 private:
  bool fill() {
    if (ended_) return false;
    if (from_ > 0) {
      text_.erase(0, from_);
      from_ = 0;
    }
    const auto got = bytes_(chunk_);
    if (!got) trouble_ = got.error();
    ended_ = !got || *got == 0;
    if (!ended_) {
      text_.append(chunk_.data(), *got);
      last_ = text_.back();
    }
    return !ended_;
  }

  ReadBytes bytes_;
  std::array<char, 65536> chunk_{};
  std::string text_;
  std::size_t from_ = 0;
  std::uint64_t line_ = 1;
  std::string trouble_;
  char last_ = '\n';  // Of all bytes; nothing is cut where there are none.
  bool ended_ = false;
};

}  // namespace idem::compare
