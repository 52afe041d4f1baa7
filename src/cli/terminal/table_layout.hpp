#pragma once

#include "cli/terminal/terminal.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace idem::cli {

using Rows = std::vector<std::vector<std::string>>;

/// Where a table or a list of names and values is shown.
struct Shown {
  std::optional<std::size_t> columns{};  ///< None: no terminal, so that nothing is shortened.
  bool colours = false;
};

/// Stdout, as it is.
Shown shown_on_stdout();

/// Lines of a table whose first row has its titles. Where it is wider than the terminal, the cells
/// of the columns named in `may_shrink` are shortened, the widest first and none below 12 columns.
/// Where that does not suffice each row becomes a block of lines "TITLE  value", whole and without
/// those that are empty or "-". The other columns are never shortened: a ref can be copied.
std::string table_text(const Rows& rows, const std::vector<std::string_view>& may_shrink,
                       const Shown& where);

/// Lines of names and values, which are never shortened.
std::string pairs_text(const Rows& rows, const Shown& where);

/// What a value means, by its name or title: states, contested, up or down.
Tone tone_of(std::string_view name, std::string_view value);

}  // namespace idem::cli
