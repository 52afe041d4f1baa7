#pragma once

#include "compare/comparison.hpp"

#include <map>
#include <string>
#include <vector>

namespace idem::cli {

/// The result for a record that a line, or the absence of one, might settle.
struct Settled {
  std::string as{};   ///< Empty: it was not changed.
  std::string why{};  ///< Why it was not changed.
};

/// The output of `idem reconcile`.
struct ComparisonReport {
  std::string name{};
  std::string digest{};  ///< SHA-256 of the whole export.
  std::uint64_t lines = 0;
  std::uint64_t bad_lines = 0;
  std::vector<std::string> bad_places{};  ///< The first ones, as sentences.
  /// The first statuses_max statuses that no option names, with the number of their lines.
  static constexpr std::size_t statuses_max = 100;
  std::map<std::string, std::uint64_t> unclear{};
  std::uint64_t unclear_others = 0;  ///< Lines of the statuses beyond those.
  compare::Result result{};
  std::map<std::size_t, Settled> settled{};  ///< By the finding's number.

  /// Differences that no evidence of this run settled.
  std::uint64_t differences() const noexcept;
  /// Records that evidence of this run should have settled and did not.
  std::size_t left() const noexcept;
  /// Whether all of the export was read.
  bool complete() const noexcept { return bad_lines == 0; }
};

/// One JSON document.
void print_comparison_json(const ComparisonReport& report);
/// Tables for people; `rows` findings at most.
void print_comparison(const ComparisonReport& report, std::size_t rows);

}  // namespace idem::cli
