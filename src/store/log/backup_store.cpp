#include "store/log/backup_store.hpp"

#include "store/file_access.hpp"
#include "store/folder.hpp"
#include "store/log/check_store.hpp"
#include "store/log/copy_store.hpp"
#include "store/log/log_store.hpp"
#include "store/log/owner_lock.hpp"
#include "store/restoring.hpp"

#include <idem/crash_point.hpp>
#include <idem/store_wait.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace idem::segments {
namespace {

using Kind = StoreFileError::Kind;
using Done = std::expected<void, StoreFileError>;

std::unexpected<StoreFileError> system_failure(const std::string& path, std::string_view doing) {
  return std::unexpected(StoreFileError{Kind::failed, file_failure(path, doing, errno)});
}

bool exists(const std::string& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0;
}

Done sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!make_durable(folder)) return system_failure(folder, "cannot be made durable");
  return {};
}

/// False: there is something at `to`, or see errno.
bool rename_to_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  // A file system that cannot look and rename in one step.
  return errno == EINVAL && !exists(to) && ::rename(from.c_str(), to.c_str()) == 0;
}

/// Deletes a directory at the end, unless it was let go.
class Leftover {
 public:
  explicit Leftover(std::string path) : path_(std::move(path)) {}
  ~Leftover() {
    std::error_code code;
    if (!path_.empty()) std::filesystem::remove_all(path_, code);
  }
  Leftover(const Leftover&) = delete;
  Leftover& operator=(const Leftover&) = delete;
  void let_go() { path_.clear(); }

 private:
  std::string path_;
};

/// Puts a backup in place of what is at a path.
class Restoring {
 public:
  explicit Restoring(const RestoreOrder& order)
      : order_(order), path_(order.path), next_(name_beside(path_, ".restoring-")) {}

  std::expected<Restored, StoreFileError> restore() {
    for (Done (Restoring::* const step)() : {&Restoring::check_backup, &Restoring::check_place,
                                             &Restoring::prepare, &Restoring::put_in_place}) {
      if (Done done = (this->*step)(); !done) return std::unexpected(std::move(done.error()));
    }
    return std::move(restored_);
  }

 private:
  Done check_backup() {
    auto report = check_store(order_.from, {});
    if (!report) return std::unexpected(std::move(report.error()));
    if (auto why = why_not_restored(order_, *report)) return std::unexpected(std::move(*why));
    restored_.from = std::move(*report);
    return {};
  }

  Done check_place() {
    std::error_code code;
    if (std::filesystem::equivalent(order_.from, path_, code)) {
      return std::unexpected(StoreFileError{Kind::refused, path_ + ": is the backup itself"});
    }
    if (!exists(path_)) return {};
    if (!order_.keep_old) return std::unexpected(store_is_there(path_));
    lock_.emplace(path_);
    if (const int error = lock_->take(); error != 0) return not_locked(path_, error);
    restored_.old_store = name_for_old(path_);
    return {};
  }

  /// The new store, whole and durable, under a name that nobody opens.
  Done prepare() {
    auto look = look_at_store(order_.from);
    if (!look) return std::unexpected(std::move(look.error()));
    leftover_.emplace(next_);
    if (Done copied = copy_store(*look, next_, {}, order_.progress); !copied) {
      return copied;
    }
    auto store = open_log(next_, {}, {.as_recorded = true, .restored = true});
    if (!store) return std::unexpected(StoreFileError{Kind::refused, store.error().detail});
    const auto census = ask_and_wait(**store, Count{});
    if (census) restored_.unknown = census->by_state[static_cast<std::size_t>(State::unknown)];
    if (auto noted = note_restore(**store, restored_.from); !noted) {
      return std::unexpected(StoreFileError{Kind::refused, noted.error()});
    }
    store->reset();
    if (Done given = give_to_owner(next_, path_); !given) return given;
    if (Done synced = sync_folder_of(next_); !synced) return synced;
    crash_point(CrashPoint::restore_prepared);
    return {};
  }

  /// With an old store the two change their names in one step: at no moment is nothing at the path,
  /// where a start would make a new store that knows no key.
  Done put_in_place() {
    const bool has_old = !restored_.old_store.empty();
    if (!has_old && !rename_to_new(next_, path_))
      return system_failure(path_, "cannot get its name");
    if (has_old &&
        ::renameat2(AT_FDCWD, next_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) != 0) {
      return system_failure(
          path_,
          "this file system cannot exchange two directories (move the old store away, "
          "and run this without --replace)");
    }
    leftover_->let_go();
    crash_point(CrashPoint::restore_named);
    if (has_old && ::rename(next_.c_str(), restored_.old_store.c_str()) != 0) {
      return system_failure(next_, "is the old store, and cannot be renamed");
    }
    return sync_folder_of(path_);
  }

  const RestoreOrder& order_;
  std::string path_;
  std::string next_;
  std::optional<OwnerLock> lock_;
  std::optional<Leftover> leftover_;
  Restored restored_;
};

}  // namespace

std::expected<StoreFileReport, StoreFileError> back_up_store(const std::string& path,
                                                             const std::string& to,
                                                             const StoreFileProgress& progress) {
  if (exists(to)) {
    return std::unexpected(StoreFileError{
        Kind::refused, to + ": there is something already; name a new directory, or move it away"});
  }
  const std::string part = name_beside(to, ".part-");
  std::optional<Leftover> leftover;
  {
    auto look = look_at_store(path);
    if (!look) return std::unexpected(std::move(look.error()));
    leftover.emplace(part);
    if (Done copied = copy_store(*look, part, look->taken_at, progress); !copied) {
      return std::unexpected(std::move(copied.error()));
    }
  }
  crash_point(CrashPoint::backup_copied);
  auto report = check_store(part, {});
  if (!report) return report;
  crash_point(CrashPoint::backup_checked);
  if (!rename_to_new(part, to)) return system_failure(to, "cannot be named");
  leftover->let_go();
  crash_point(CrashPoint::backup_named);
  if (Done synced = sync_folder_of(to); !synced) return std::unexpected(std::move(synced.error()));
  return report;
}

std::expected<Restored, StoreFileError> restore_store(const RestoreOrder& order) {
  return Restoring(order).restore();
}

}  // namespace idem::segments
