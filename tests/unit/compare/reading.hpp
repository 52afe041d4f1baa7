#pragma once

#include "compare/export_reader.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace idem::test {

/// A text, so many bytes at a time.
inline compare::ReadBytes bytes_of(std::string text, std::size_t step) {
  return [text = std::move(text), step, at = std::size_t{0}](
             std::span<char> into) mutable -> std::expected<std::size_t, std::string> {
    const std::size_t count = std::min({step, text.size() - at, into.size()});
    std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(at), count, into.begin());
    at += count;
    return count;
  };
}

/// All that a reader says, a text each: "LINE: value|value", "-" for none, "LINE:COLUMN! why".
inline std::vector<std::string> all_of(compare::ExportReader& reader) {
  std::vector<std::string> lines;
  compare::ExportLine line;
  for (;;) {
    const auto more = reader.next(line);
    if (!more) {
      const auto& bad = more.error();
      lines.push_back(std::to_string(bad.line) + ":" + std::to_string(bad.column) + "! " +
                      bad.what);
      if (bad.is_end) return lines;
      continue;
    }
    if (!*more) return lines;
    std::string text = std::to_string(line.line) + ": ";
    for (std::size_t i = 0; i < line.values.size(); ++i) {
      text += (i > 0 ? "|" : "") + line.values[i].value_or("-");
    }
    lines.push_back(text);
  }
}

}  // namespace idem::test
