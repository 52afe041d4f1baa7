#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace idem::cli::doctor {

/// What one check of `idem doctor` found.
struct Finding {
  enum class Result { ok, warning, problem, skipped };
  std::string check;  ///< What was looked at: "store", "certificate /etc/idem/tls.pem".
  Result result = Result::ok;
  std::string what;  ///< A sentence; of a skipped one the reason.
  std::string todo;  ///< Of a warning and a problem.

  static Finding ok(std::string check, std::string what) {
    return {std::move(check), Result::ok, std::move(what), {}};
  }
  static Finding warning(std::string check, std::string what, std::string todo) {
    return {std::move(check), Result::warning, std::move(what), std::move(todo)};
  }
  static Finding problem(std::string check, std::string what, std::string todo) {
    return {std::move(check), Result::problem, std::move(what), std::move(todo)};
  }
  static Finding skipped(std::string check, std::string why) {
    return {std::move(check), Result::skipped, std::move(why), {}};
  }
};
using Findings = std::vector<Finding>;

/// A check that may wait for another party. It blocks, and shares nothing with the others: one that
/// is too slow is left behind.
struct Probe {
  std::string check;
  std::function<Findings()> run;
  /// What to do where it does not end.
  std::string todo = "look at the network, the resolver and the service";
};

/// Of one that reads files: a disk that hangs is noticed by the wait for it alone.
inline constexpr const char* look_at_the_disk =
    "look whether the disk hangs (dmesg), and what holds it up: a frozen file system, a volume "
    "whose server is gone";

}  // namespace idem::cli::doctor
