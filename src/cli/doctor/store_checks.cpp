#include "cli/doctor/store_checks.hpp"

#include "cli/doctor/machine_checks.hpp"
#include "cli/settings/opening.hpp"
#include "core/record/store_clock.hpp"
#include "store/file_access.hpp"
#include "store/known_kinds.hpp"

#include <idem/open_store.hpp>
#include <idem/store_wait.hpp>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>

namespace idem::cli::doctor {
namespace {

constexpr const char* store_check = "store";

Findings look_at_mode(const std::string& path) {
  struct stat state{};
  if (::stat(path.c_str(), &state) != 0) return {};
  if ((state.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return {Finding::problem(
        "store file",
        fmt::format("the mode of {} is {:04o}: other users can read the secret that names the "
                    "records, and the answers",
                    path, state.st_mode & 07777),
        (S_ISDIR(state.st_mode) ? "chmod 0700 " : "chmod 0600 ") + path)};
  }
  if (::access(path.c_str(), R_OK | W_OK) != 0) {
    return {Finding::problem(
        "store file",
        with_advice("this user cannot write " + path + ": " + std::strerror(errno), path),
        "run idem doctor as the gateway's user; if this is that user, do what the sentence says")};
  }
  return {Finding::ok("store file", "only its owner reads and writes it")};
}

/// Its clock is this machine's.
Findings look_at_file(const StoreFileKind& kind, const std::string& path,
                      const GatewayOptions& options) {
  Findings found{judge_clock(is_clock_synchronised(), std::nullopt)};
  const auto judged = judge_store_file(kind, options, LookDepth::whole);
  const auto& report = judged.report;
  if (!report && !judged.why_refused) {
    const bool is_there = report.error().kind == StoreFileError::Kind::refused;
    found.push_back(
        is_there ? Finding::warning(store_check, report.error().why, "a start upgrades it")
                 : Finding::warning(store_check,
                                    report.error().why + ": a start makes a new store, which "
                                                         "knows no earlier key",
                                    "if you expect records, write the path of their store"));
    return found;
  }
  if (!report) {
    // Nobody should restore, and so forget keys, because of a right.
    const bool is_the_machines = report.error().kind == StoreFileError::Kind::failed;
    const bool is_there = report.error().kind == StoreFileError::Kind::refused;
    found.push_back(Finding::problem(
        store_check, *judged.why_refused,
        is_the_machines ? "do what the sentence says; bring back no copy of the store for it"
        : is_there      ? "do what the sentence says; idem store check lists all that is damaged"
                        : "write the path of that store, or restore a backup"));
    return found;
  }
  if (judged.why_refused) {
    found.push_back(Finding::problem(
        store_check, *judged.why_refused,
        "do what the sentence says; a start refuses the store with these settings"));
  } else {
    found.push_back(Finding::ok(store_check, fmt::format("{} is store {}, {} bytes", path,
                                                         report->store_id, report->bytes)));
  }
  for (const auto& doubt : report->doubts) {
    found.push_back(Finding::warning(store_check, path + ": " + doubt,
                                     "if you know of no crash, look at the disk, and compare what "
                                     "your API ran in that time with idem keys list"));
  }
  auto mode = look_at_mode(path);
  found.insert(found.end(), mode.begin(), mode.end());
  return found;
}

/// What a store says while it is open, from any thread.
class Warnings {
 public:
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    all_.push_back(text);
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
};

Findings ask_server(const GatewayOptions& options) {
  const auto warnings = std::make_shared<Warnings>();
  // Assigned, not in braces: GCC 12 takes a temporary of these for uninitialised.
  OpenOptions how;
  how.migrate = false;
  how.warn = [warnings](const std::string& text) { warnings->add(text); };
  how.which.id = options.store_id;
  how.which.make = false;
  how.which.look = true;
  how.opened = [](const OpenedStore&) {};
  how.encryption = options.encryption;
  const auto store = open_store(options.store, identity_settings(options), how);
  Findings found;
  if (!store) {
    found.push_back(Finding::problem(store_check, store.error(),
                                     "do what the sentence says; docs/stores.md has the settings "
                                     "that each server needs"));
    found.push_back(judge_clock(is_clock_synchronised(), std::nullopt));
    return found;
  }
  const StoreTime before = wall_time();
  const auto census = ask_and_wait(**store, Count{});
  const StoreTime after = wall_time();
  if (!census) {
    found.push_back(
        Finding::problem(store_check, census.error().detail, "look at the server and its log"));
    return found;
  }
  found.push_back(Finding::ok(store_check, shown_store_url(options.store) +
                                               " answers, and its settings "
                                               "are those it needs"));
  for (const std::string& text : warnings->all()) {
    found.push_back(Finding::warning("store settings", text,
                                     "change the server's setting; docs/stores.md says what each "
                                     "one may lose"));
  }
  found.push_back(judge_clock(is_clock_synchronised(), clock_ahead(before, census->now, after)));
  return found;
}

}  // namespace

Probe store_probe(const GatewayOptions& options) {
  return {store_check, [&options]() -> Findings {
            if (options.store == "memory:") {
              return {Finding::warning(store_check,
                                       "memory: keeps nothing: after a restart every key "
                                       "runs again",
                                       "use sqlite:PATH, embedded:PATH or a server"),
                      judge_clock(is_clock_synchronised(), std::nullopt)};
            }
            const KnownKind* const kind = known_kind_of(options.store);
            if (kind == nullptr || kind->linked == nullptr || kind->linked->file == nullptr) {
              return ask_server(options);
            }
            return look_at_file(*kind->linked->file, path_in(options.store).value(), options);
          }};
}

}  // namespace idem::cli::doctor
