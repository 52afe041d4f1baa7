#pragma once

#include "cli/doctor/finding.hpp"
#include "cli/process/surroundings.hpp"
#include "cli/settings/gateway_options.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

/// What the machine gives a gateway: its clock, disks and limits.
namespace idem::cli::doctor {

/// `ahead`: how far this machine's clock is before the store server's; none: there is none.
Finding judge_clock(bool is_synchronised, std::optional<Millis> ahead);

/// `check` names the folder. `holds_store`: an embedded store lies there.
Findings judge_disk(const std::string& check, const DiskFacts& facts, bool holds_store);

struct Limits {
  std::uint64_t files = 0;       ///< Descriptors, the hard limit: a gateway raises the soft one.
  std::uint64_t file_bytes = 0;  ///< RLIMIT_FSIZE.
};
Limits limits_of_this_process();
Findings judge_limits(const Limits& limits, const GatewayOptions& options);

/// All of them but the clock of a store.
Findings check_machine(const GatewayOptions& options);

}  // namespace idem::cli::doctor
