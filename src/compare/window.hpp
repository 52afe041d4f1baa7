#pragma once

#include <idem/worker_limits.hpp>
#include "compare/export_reader.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace idem::compare {

/// The part of an export that is being read. It begins at the current line, grows while the reader
/// looks ahead, and forgets the bytes that the reader takes.
class Window {
 public:
  explicit Window(ReadBytes bytes) : bytes_(std::move(bytes)) {}

  static constexpr int end = -1;

  /// Skips a byte order mark at the beginning.
  void skip_byte_order_mark() {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    std::size_t count = 0;
    while (count < mark.size() && at(count) == static_cast<unsigned char>(mark[count])) ++count;
    if (count == mark.size()) take(count);
  }

  /// The byte at `offset` from the line's beginning; `end`: there is none.
  int at(std::size_t offset) {
    while (from_ + offset >= text_.size()) {
      if (!fill()) return end;
    }
    return static_cast<unsigned char>(text_[from_ + offset]);
  }
  /// The offset of the first of these bytes from `offset` on, or of the end; searches up to
  /// `offset_max`.
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
  /// The line and column of a byte.
  BadLine place(std::size_t offset, std::string what) const {
    const auto before = text(0, offset);
    const auto lines = std::ranges::count(before, '\n');
    const auto last = before.rfind('\n');
    const std::size_t column = last == before.npos ? offset : offset - last - 1;
    return {line_ + static_cast<std::uint64_t>(lines), column + 1, std::move(what)};
  }
  /// Consumes `count` bytes.
  void take(std::size_t count) {
    line_ += static_cast<std::uint64_t>(std::ranges::count(text(0, count), '\n'));
    from_ += count;
    if (from_ == text_.size()) {
      text_.clear();
      from_ = 0;
    }
  }
  /// Skips up to the next end of a line behind `offset`.
  void skip_line_behind(std::size_t offset) {
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
  /// After the last byte: an error if the last line has no end, because the file may be cut off.
  std::optional<BadLine> last_line_cut() const {
    if (last_ == '\n') return std::nullopt;
    return BadLine{line_, 0, "the last line has no end; the file may be cut off", true};
  }
  /// Why reading ended early; empty: it did not.
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
  char last_ = '\n';  // The last byte; an empty file is not cut off.
  bool ended_ = false;
};

}  // namespace idem::compare
