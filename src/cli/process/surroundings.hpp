#pragma once

#include <idem/record.hpp>

#include <cstdint>
#include <optional>
#include <string>

/// What the machine gives a process: the room of its disks, and its clock. A start, a process that
/// serves, its metrics and `idem doctor` judge by the same numbers (docs/alerts.yml, too).
namespace idem::cli {

/// What a day of records needs.
inline constexpr std::uint64_t disk_is_low = 1024UL * 1024 * 1024;
/// Keys with a time and certificates allow for minutes; a second is what people still understand in
/// two logs side by side.
inline constexpr Millis clock_is_off = std::chrono::seconds(2);

struct DiskFacts {
  std::uint64_t free_bytes = 0;
  std::uint64_t free_files = 0;
  bool counts_files = true;  ///< False: the file system makes them as they are needed.
  bool is_read_only = false;
  std::uint64_t kind = 0;  ///< As statfs(2) names it.
};
/// None: the folder cannot be asked about.
std::optional<DiskFacts> disk_facts_of(const std::string& folder);
std::string in_mib(std::uint64_t bytes);  ///< "512 MiB"

/// Asks the kernel (adjtimex).
bool is_clock_synchronised();
/// A sentence; none: the clock is right. `ahead`: of the store's; none: there is no other clock.
std::optional<std::string> why_clock_is_off(bool is_synchronised, std::optional<Millis> ahead);

}  // namespace idem::cli
