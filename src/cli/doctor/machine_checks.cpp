#include "cli/doctor/machine_checks.hpp"

#include "cli/process/resources.hpp"
#include "cli/settings/paths.hpp"
#include "store/file_access.hpp"
#include "store/known_kinds.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace idem::cli::doctor {
namespace {

constexpr Millis clock_problem = std::chrono::minutes(1);
// What uploads leave free, twice (limits::spill_disk_free_min).
constexpr std::uint64_t disk_problem = 128UL * 1024 * 1024;
constexpr std::uint64_t files_warning = 1'000;
// Besides clients and upstream: listeners, the store's connections, files, providers.

struct FileSystem {
  std::uint64_t kind;  ///< linux/magic.h
  const char* name;
};
constexpr std::array network{FileSystem{0x6969, "NFS"},       FileSystem{0xFF534D42, "CIFS"},
                             FileSystem{0xFE534D42, "SMB"},   FileSystem{0x01021997, "9P"},
                             FileSystem{0x00C36400, "Ceph"},  FileSystem{0x6B414653, "AFS"},
                             FileSystem{0x19830326, "FhGFS"}, FileSystem{0x0BD00BD0, "Lustre"}};
constexpr std::uint64_t memory_kinds[] = {0x01021994, 0x858458F6};
constexpr std::uint64_t fuse = 0x65735546;

Finding judge_file_system(const std::string& check, std::uint64_t kind) {
  const auto* const found = std::ranges::find(network, kind, &FileSystem::kind);
  if (found != network.end()) {
    return Finding::problem(
        check + " file system",
        fmt::format(
            "it is a network file system ({}): its locks and syncs are not those of a disk, "
            "and a store may be opened twice or lose commits",
            found->name),
        "put the store on a local disk, or use a server as the store");
  }
  if (std::ranges::find(memory_kinds, kind) != std::end(memory_kinds)) {
    return Finding::warning(check + " file system",
                            "it lies in memory: a restart of the machine loses every record, and "
                            "every key runs again",
                            "put the store on a disk");
  }
  if (kind == fuse) {
    return Finding::warning(check + " file system",
                            "a program provides it (FUSE): nobody knows whether it locks and syncs",
                            "put the store on a local disk");
  }
  return Finding::ok(check + " file system", "it is a local one");
}

}  // namespace

Finding judge_clock(bool is_synchronised, std::optional<Millis> ahead) {
  const Millis off = ahead ? std::chrono::abs(*ahead) : Millis(0);
  const auto why = why_clock_is_off(is_synchronised, ahead);
  if (!why) {
    return Finding::ok(
        "clock", ahead ? fmt::format("synchronised, and {} ms from the store's server", off.count())
                       : "synchronised");
  }
  if (off < clock_is_off) {
    return Finding::warning("clock", *why,
                            "run an NTP client (chrony, systemd-timesyncd); in a container, on its "
                            "host");
  }
  const char* const todo =
      "synchronise both with NTP (chrony, systemd-timesyncd): times in keys, certificates and "
      "evidence are compared by them";
  return off >= clock_problem ? Finding::problem("clock", *why, todo)
                              : Finding::warning("clock", *why, todo);
}

Findings judge_disk(const std::string& check, const DiskFacts& facts, bool holds_store) {
  Findings found;
  const char* const consequence =
      holds_store ? "a store that cannot write ends the process" : "uploads are refused";
  if (facts.is_read_only) {
    found.push_back(Finding::problem(check, "it is mounted read-only",
                                     "mount it for writing, or write another path"));
  } else if (facts.free_bytes < disk_problem) {
    found.push_back(Finding::problem(
        check, fmt::format("{} are free: {}", in_mib(facts.free_bytes), consequence),
        "free room, or move the files to a larger disk"));
  } else if (facts.free_bytes < disk_is_low) {
    found.push_back(
        Finding::warning(check,
                         fmt::format("{} are free: when they are used up, {}",
                                     in_mib(facts.free_bytes), consequence),
                         "free room before it is needed; a shorter retention needs less"));
  } else {
    found.push_back(Finding::ok(check, in_mib(facts.free_bytes) + " are free"));
  }
  if (facts.counts_files && facts.free_files < files_warning) {
    found.push_back(
        Finding::warning(check, fmt::format("{} more files can be made there", facts.free_files),
                         "delete small files, or make the file system anew with more inodes"));
  }
  if (holds_store) found.push_back(judge_file_system(check, facts.kind));
  return found;
}

Limits limits_of_this_process() {
  rlimit files{};
  rlimit bytes{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_FSIZE, &bytes);
  return {files.rlim_max, bytes.rlim_cur};
}

Findings judge_limits(const Limits& limits, const GatewayOptions& options) {
  Findings found;
  const std::uint64_t needed = descriptors_for(options.connections, options.store);
  if (limits.files < needed) {
    found.push_back(Finding::warning(
        "open files",
        fmt::format("a process that is started here may have {} open files, and {} clients, their "
                    "connections to the API and the store need up to {}",
                    limits.files, options.connections, needed),
        fmt::format(
            "raise the limit (LimitNOFILE={} in the unit of a service, ulimit -Hn), or lower "
            "limits.connections",
            needed)));
  } else {
    found.push_back(Finding::ok(
        "open files", fmt::format("{} are allowed to a process that is started here, {} are needed",
                                  limits.files, needed)));
  }
  if (limits.file_bytes != RLIM_INFINITY) {
    found.push_back(Finding::problem(
        "file size",
        fmt::format("a process may write files of {} bytes (RLIMIT_FSIZE): a store that grows "
                    "beyond that ends the process",
                    limits.file_bytes),
        "take the limit away (LimitFSIZE=infinity in the unit, ulimit -f unlimited)"));
  }
  if (options.core_dumps) {
    found.push_back(Finding::warning(
        "core dumps", "they are allowed: keys, bodies and secrets lie in them in clear",
        "set core_dumps to false once the defect is found"));
  }
  return found;
}

Findings check_machine(const GatewayOptions& options) {
  Findings found = judge_limits(limits_of_this_process(), options);
  const auto add = [&](const std::string& check, const std::string& folder, bool holds_store) {
    const auto facts = disk_facts_of(folder);
    if (!facts) {
      struct stat state{};
      const int error = ::stat(folder.c_str(), &state) != 0 ? errno : 0;
      const bool is_known = error != 0 && error != ENOENT;
      found.push_back(Finding::problem(
          check, "the folder is not there, or cannot be asked about",
          is_known ? words_on(error, folder, folder) : "make it, or write another path"));
      return;
    }
    std::ranges::move(judge_disk(check, *facts, holds_store), std::back_inserter(found));
    if (!facts->is_read_only && ::access(folder.c_str(), W_OK | X_OK) != 0) {
      const std::string why = std::string("this user cannot write there: ") + std::strerror(errno);
      found.push_back(Finding::problem(check, with_advice(why, folder + "/file"),
                                       "run idem doctor as the gateway's user; if this is that "
                                       "user, do what the sentence says"));
    }
  };
  if (const auto path = path_in(options.store)) {
    const auto folder = folder_of(*path);
    add("disk of the store (" + folder + ")", folder, true);
  }
  add("disk of uploads (" + options.spill_dir + ")", options.spill_dir, false);
  return found;
}

}  // namespace idem::cli::doctor
