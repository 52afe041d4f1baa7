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
  /// For how long an API may refuse connections after a case, so that it may be started again.
  std::chrono::milliseconds silence_max{10'000};
};

/// Whether each of these names is a case or a group of cases. The error is the first that is not.
std::expected<void, std::string> are_known(const std::vector<std::string>& only);

/// Runs the cases one after the other. A case that fails runs again, three times at most: what
/// fails a second time is a finding, and so is an execution too many that exact `effects` have
/// counted; what else does not fail again is reported as not confirmed. After each
/// case the API must accept connections: a case after which it does not is a finding, and ends the
/// run. A run that ends early reports its other cases as skipped. The error says why there is no
/// report: the API does not answer, or refuses the request of the file.
std::expected<Report, std::string> run_cases(Api& api, const RunSettings& settings);

}  // namespace idem::check
