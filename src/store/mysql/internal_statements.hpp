#pragma once

#include "store/internal_sql.hpp"

#include <string_view>

namespace idem::mysql {

/// One of Idem's statements. None of the servers returns the rows of an UPDATE, so a statement that
/// does has two parts, in one transaction: `first` reads and locks, `then` changes.
struct InternalText {
  std::string_view first;
  /// Empty: there is none. `{}` in it: the numbers in the last column of `first`, which is no
  /// column of the result; without such a number it is not run.
  std::string_view then{};
  /// `first` is a change, and the result is one row if it met one.
  bool tells_change = false;
  /// `then` runs before `first`.
  bool reads_last = false;
};

InternalText text_of(InternalStatement statement) noexcept;

}  // namespace idem::mysql
