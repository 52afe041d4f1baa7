#pragma once

#include "check/case.hpp"

#include <functional>

namespace idem::check {

/// Which cases, in what order, and who learns how far the run is.
struct RunSettings {
  std::uint64_t seed = 0;           ///< Of the order.
  std::vector<std::string> only{};  ///< Ids, or their first parts ("race"); empty: all.
  /// Before a case begins: its number from 1, of how many, and its id.
  std::function<void(std::size_t, std::size_t, std::string_view)> progress{};
};

/// Runs the cases one after the other. A case that fails runs again, three times at most: what
/// fails a second time is a finding, and what does not is reported as seen once. The error says why
/// there is no verdict: nobody answers.
std::expected<Report, std::string> run_cases(Api& api, const RunSettings& settings);

}  // namespace idem::check
