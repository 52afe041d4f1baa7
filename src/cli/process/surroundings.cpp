#include "cli/process/surroundings.hpp"

#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

namespace idem::cli {

std::optional<DiskFacts> disk_facts_of(const std::string& folder) {
  struct statvfs disk{};
  struct statfs kind{};
  if (::statvfs(folder.c_str(), &disk) != 0 || ::statfs(folder.c_str(), &kind) != 0) {
    return std::nullopt;
  }
  const auto blocks = ::geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
  return DiskFacts{.free_bytes = std::uint64_t{blocks} * disk.f_frsize,
                   .free_files = disk.f_favail,
                   .counts_files = disk.f_files > 0,
                   .is_read_only = (disk.f_flag & ST_RDONLY) != 0,
                   .kind = static_cast<std::uint64_t>(kind.f_type) & 0xFFFFFFFFu};
}

std::string in_mib(std::uint64_t bytes) { return std::to_string(bytes / (1024UL * 1024)) + " MiB"; }

bool is_clock_synchronised() {
  timex state{};
  return ::adjtimex(&state) >= 0 && (state.status & STA_UNSYNC) == 0;
}

std::optional<std::string> why_clock_is_off(bool is_synchronised, std::optional<Millis> ahead) {
  const Millis off = ahead ? std::chrono::abs(*ahead) : Millis(0);
  if (off >= clock_is_off) {
    const char* const how = *ahead > Millis(0) ? "ahead of" : "behind";
    return "this machine's clock is " + std::to_string(off.count()) + " ms " + how +
           " that of the store";
  }
  if (is_synchronised) return std::nullopt;
  return "the kernel does not regard the clock as synchronised";
}

}  // namespace idem::cli
