#include "cli/terminal/table_layout.hpp"

#include "cli/terminal/text_width.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>

namespace idem::cli {
namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t least_columns = 12;

std::vector<std::size_t> widths_of(const Rows& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], columns_of(row[i]));
    }
  }
  return widths;
}

std::size_t whole_width(const std::vector<std::size_t>& widths) {
  const std::size_t sum = std::accumulate(widths.begin(), widths.end(), std::size_t{0});
  return sum + (widths.empty() ? 0 : (widths.size() - 1) * gap);
}

/// Makes columns narrower until all fit. False: they cannot.
bool shrink(std::vector<std::size_t>& widths, const std::vector<bool>& may_shrink,
            std::size_t columns) {
  while (whole_width(widths) > columns) {
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (!may_shrink[i] || widths[i] <= least_columns) continue;
      if (widest == nullptr || widths[i] > *widest) widest = &widths[i];
    }
    if (widest == nullptr) return false;
    --*widest;
  }
  return true;
}

std::string padding(std::string_view text, std::size_t width) {
  const std::size_t used = columns_of(text);
  return std::string(used < width ? width - used : 0, ' ');
}

/// `name_of`: the name or title by which the cell of a row and column is coloured.
template <class NameOf>
std::string lines_of(const Rows& rows, const std::vector<std::size_t>& widths, NameOf name_of,
                     bool colours) {
  std::string text;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto& cells = rows[row];
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const bool is_last = i + 1 == cells.size();
      const std::string cell = shortened(cells[i], widths[i]);
      text += in_tone(cell, tone_of(name_of(row, i), cells[i]), colours);
      if (!is_last) text += padding(cell, widths[i] + gap);
    }
    text += '\n';
  }
  return text;
}

std::string blocks_of(const Rows& rows, const Shown& where) {
  std::string text;
  const auto& titles = rows.front();
  std::size_t width = 0;
  for (const auto& title : titles) width = std::max(width, columns_of(title));
  for (std::size_t row = 1; row < rows.size(); ++row) {
    if (row > 1) text += '\n';
    for (std::size_t i = 0; i < rows[row].size() && i < titles.size(); ++i) {
      const auto& cell = rows[row][i];
      if (cell.empty() || cell == "-") continue;
      text += titles[i] + padding(titles[i], width + gap) +
              in_tone(cell, tone_of(titles[i], cell), where.colours) + '\n';
    }
  }
  return text;
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

Shown shown_on_stdout() { return {terminal_columns(STDOUT_FILENO), has_colours(STDOUT_FILENO)}; }

std::string table_text(const Rows& rows, const std::vector<std::string_view>& may_shrink,
                       const Shown& where) {
  if (rows.empty()) return {};
  auto widths = widths_of(rows);
  std::vector<bool> shrinks(widths.size());
  for (std::size_t i = 0; i < rows.front().size(); ++i) {
    shrinks[i] = std::ranges::find(may_shrink, rows.front()[i]) != may_shrink.end();
  }
  const bool has_rows = rows.size() > 1;
  if (where.columns && has_rows && !shrink(widths, shrinks, *where.columns)) {
    return blocks_of(rows, where);
  }
  return lines_of(
      rows, widths,
      [&](std::size_t row, std::size_t i) {
        return row == 0 || i >= rows.front().size() ? std::string_view() : rows.front()[i];
      },
      where.colours);
}

std::string pairs_text(const Rows& rows, const Shown& where) {
  return lines_of(
      rows, widths_of(rows),
      [&](std::size_t row, std::size_t i) {
        return i == 1 ? std::string_view(rows[row].front()) : std::string_view();
      },
      where.colours);
}

Tone tone_of(std::string_view name, std::string_view value) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "contested" && value == "yes") return Tone::bad;
  if (lower == "state" || lower == "record: state") {
    if (is_one_of(value, {"completed", "delivered", "approved"})) return Tone::good;
    if (is_one_of(value, {"unknown", "dead", "damaged"})) return Tone::bad;
    if (is_one_of(value, {"failed_retryable", "cancelled", "rejected"})) return Tone::warning;
    return Tone::plain;
  }
  if (lower == "verdict" && value.starts_with("refused")) return Tone::bad;
  if (value == "DOWN" || value.starts_with("DOWN,") || value.starts_with("DOWN:")) return Tone::bad;
  return Tone::plain;
}

}  // namespace idem::cli
