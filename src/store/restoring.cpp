#include "store/restoring.hpp"

#include "core/record/restore_note.hpp"
#include "core/record/store_clock.hpp"
#include "store/file_access.hpp"
#include "store/folder.hpp"

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>
#include <idem/store_wait.hpp>

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>

namespace idem {
namespace {

using ErrorKind = StoreFileError::Kind;

/// As transitions::end_restored() leaves it.
constexpr std::string_view restored_code = "store_restored";

bool exists(const std::string& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0;
}

std::string utc_now() {
  const std::time_t seconds = wall_time().time_since_epoch().count() / 1000;
  std::tm fields{};
  ::gmtime_r(&seconds, &fields);
  std::array<char, 32> text{};
  (void)std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &fields);
  return text.data();
}

}  // namespace

std::string name_beside(const std::string& path, const char* suffix) {
  std::array<std::uint8_t, 8> random{};
  random_bytes(random);
  return path + suffix + to_hex(random);
}

std::string name_for_old(const std::string& path) {
  const std::string first = path + ".before-restore-" + utc_now();
  std::string name = first;
  for (int next = 2; exists(name) || exists(name + "-wal"); ++next) {
    name = first + "-" + std::to_string(next);
  }
  return name;
}

std::optional<StoreFileError> why_not_restored(const RestoreOrder& order,
                                               const StoreFileReport& backup) {
  if (backup.found == 0 || order.accept_damage) return std::nullopt;
  return StoreFileError{
      ErrorKind::refused,
      order.from + ": is damaged: " + backup.findings.front().where + ": " +
          backup.findings.front().what + ". idem store check lists all " +
          std::to_string(backup.found) +
          " findings; take another backup, or give --accept-damage: damaged records "
          "then stay refused"};
}

std::expected<void, std::string> note_restore(Store& store, const StoreFileReport& backup) {
  const auto census = ask_and_wait(store, Count{});
  if (!census) return std::unexpected(census.error().detail);
  const auto count = [&](State state) { return backup.by_state[static_cast<std::size_t>(state)]; };
  RestoreNote note{.copied_at = backup.copied_at,
                   .restored_at = census->now,
                   .in_progress = count(State::in_progress),
                   .pending = count(State::pending),
                   .failed_retryable = count(State::failed_retryable)};
  // The store made them unknown when it was opened.
  const std::uint64_t wanted = std::min<std::uint64_t>(note.open(), restored_refs_max);
  List page{.state = State::unknown, .limit = limits::list_page_max};
  while (note.first.size() < wanted) {
    const auto found = ask_and_wait(store, page);
    if (!found) return std::unexpected(found.error().detail);
    for (const Record& record : *found) {
      const bool is_one = record.last_error_code == restored_code &&
                          (!backup.copied_at || record.changed_at >= *backup.copied_at);
      if (is_one && note.first.size() < wanted) note.first.push_back(record.id);
    }
    if (found->size() < page.limit) break;
    page.after = found->back().id;
  }
  const std::string journal(restores_journal);
  const auto end = ask_and_wait(store, ReadLines{.journal = journal, .limit = 0});
  if (!end) return std::unexpected(end.error().detail);
  const auto noted = ask_and_wait(
      store, AppendLine{.journal = journal, .behind = end->last, .line = to_line(note)});
  if (!noted) return std::unexpected(noted.error().detail);
  return {};
}

StoreFileError store_is_there(const std::string& path) {
  return {ErrorKind::refused,
          path + ": there is a store already; --replace moves it to another name, which it prints"};
}

std::unexpected<StoreFileError> not_locked(const std::string& path, int error) {
  if (error != EWOULDBLOCK) {
    return std::unexpected(
        StoreFileError{ErrorKind::failed, file_failure(path, "cannot be locked", error)});
  }
  return std::unexpected(StoreFileError{
      ErrorKind::refused,
      path + ": a process has this store open: stop the gateway, worker or service first"});
}

std::expected<void, StoreFileError> give_to_owner(const std::string& made,
                                                  const std::string& path) {
  if (::geteuid() != 0) return {};
  const auto failure = [](const std::string& at, const char* doing) {
    return std::unexpected(StoreFileError{ErrorKind::failed, file_failure(at, doing, errno)});
  };
  struct stat owner{};
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (::stat(path.c_str(), &owner) != 0 && ::stat(folder.c_str(), &owner) != 0) {
    return failure(folder, "cannot be read");
  }
  const auto give = [&](const std::string& one) {
    return ::lchown(one.c_str(), owner.st_uid, owner.st_gid) == 0;
  };
  constexpr const char* not_given = "cannot be given to the user of its folder";
  if (!give(made)) return failure(made, not_given);
  std::error_code code;
  if (!std::filesystem::is_directory(made, code)) return {};
  for (const std::string& one : paths_below(made, code)) {
    if (!give(one)) return failure(one, not_given);
  }
  errno = code.value();
  if (code) return failure(made, not_given);
  return {};
}

}  // namespace idem
