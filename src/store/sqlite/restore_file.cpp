#include "store/sqlite/restore_file.hpp"

#include "core/record/store_clock.hpp"
#include "store/file_access.hpp"
#include "store/restoring.hpp"
#include "store/sqlite/backup_file.hpp"
#include "store/sqlite/check_file.hpp"
#include "store/sqlite/judge_log.hpp"
#include "store/sqlite/log_doubts.hpp"
#include "store/sqlite/owner_lock.hpp"
#include "store/sqlite/snapshot.hpp"
#include "store/sqlite/sqlite_store.hpp"

#include <idem/crash_point.hpp>
#include <idem/store_wait.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace idem::sqlite {
namespace {

using Kind = StoreFileError::Kind;
using Done = std::expected<void, StoreFileError>;

constexpr std::string_view blocked = "idem store restore was interrupted here";

std::unexpected<StoreFileError> restore_failure(const std::string& path, std::string_view doing) {
  return std::unexpected(StoreFileError{Kind::failed, file_failure(path, doing, errno)});
}

std::unexpected<StoreFileError> restore_refused(std::string why) {
  return std::unexpected(StoreFileError{Kind::refused, std::move(why)});
}

bool exists(const std::string& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0;
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code code;
  return std::filesystem::equivalent(a, b, code);
}

/// Puts a backup in place of what is at a path.
class Restoring {
 public:
  Restoring(const RestoreOrder& order, std::string path)
      : order_(order), path_(std::move(path)), next_(name_beside(path_, ".restoring-")) {}

  std::expected<Restored, StoreFileError> restore() {
    for (Done (Restoring::* const step)() :
         {&Restoring::check_backup, &Restoring::check_place, &Restoring::prepare,
          &Restoring::keep_old, &Restoring::block, &Restoring::put_in_place}) {
      if (Done done = (this->*step)(); !done) return std::unexpected(std::move(done.error()));
    }
    return std::move(restored_);
  }

 private:
  Done check_backup() {
    auto report = check_file(order_.from, {});
    if (!report) return std::unexpected(std::move(report.error()));
    if (auto why = why_not_restored(order_, *report)) return std::unexpected(std::move(*why));
    restored_.from = std::move(*report);
    // --accept-damage is about records, which stay refused; those that a log lost would run again.
    const auto judged = judge_written_log(real_path(order_.from) + "-wal");
    if (judged && judged->kind != LogJudgement::Kind::damaged) return {};
    return restore_refused(order_.from +
                           ": its log is damaged, and the keys that it lost would run "
                           "again: make a store of it first (idem store recover)");
  }

  Done check_place() {
    if (is_same_file(order_.from, path_)) return restore_refused(path_ + ": is the backup itself");
    if (interrupted_restore_at(path_)) return {};
    // The restore would delete it, and it may have keys that the backup does not know.
    if (const auto why = why_log_has_no_database(path_)) {
      return restore_refused(path_ + ": " + *why);
    }
    if (!exists(path_)) return {};
    if (!order_.keep_old) return std::unexpected(store_is_there(path_));
    lock_.emplace(path_);
    if (!lock_->is_open()) return restore_failure(path_, "cannot be opened");
    if (const int error = lock_->take(); error != 0) return not_locked(path_, error);
    restored_.old_store = name_for_old(path_);
    return {};
  }

  /// The new store, whole and durable, under a name that nobody opens.
  Done prepare() {
    leftover_.emplace(next_);
    const std::string from = real_path(order_.from);
    auto copied = with_snapshot(from, [&](Snapshot& source) -> Done {
      ::unlink(next_.c_str());
      return copy_pages(source.db(), next_, std::nullopt, order_.progress);
    });
    if (!copied) return copied;
    auto store = open_sqlite(next_, {}, {.as_recorded = true, .restored = true});
    if (!store) return restore_refused(store.error().detail);
    const auto census = ask_and_wait(**store, Count{});
    if (census) restored_.unknown = census->by_state[static_cast<std::size_t>(State::unknown)];
    if (auto noted = note_restore(**store, restored_.from); !noted) {
      return restore_refused(noted.error());
    }
    store->reset();
    if (Done given = give_to_owner(next_, path_); !given) return given;
    if (Done synced = sync_folder(next_); !synced) return synced;
    crash_point(CrashPoint::restore_prepared);
    return {};
  }

  /// Gives the old store a second name; its log first, because a store without its log lacks its
  /// last commits.
  Done keep_old() {
    const std::string& old = restored_.old_store;
    const std::string log = path_ + "-wal";
    if (old.empty()) return {};
    if (exists(log) && ::link(log.c_str(), (old + "-wal").c_str()) != 0) {
      return restore_failure(old + "-wal", "the old store's log cannot get this name");
    }
    if (::link(path_.c_str(), old.c_str()) != 0) {
      return restore_failure(old, "the old store cannot get this name");
    }
    if (Done synced = sync_folder(path_); !synced) return synced;
    crash_point(CrashPoint::restore_old_kept);
    return {};
  }

  /// SQLite would apply the old log to the new database, and no order of two renames avoids a
  /// moment with one of them. So meanwhile a link to nothing is at the path, which no program takes
  /// for a store: SQLite looks for a log beside its target. A file would not do: the old log may
  /// have all pages of a store.
  Done block() {
    const std::string sentence = fmt::format("{}: run it again: idem store restore {} sqlite:{}",
                                             blocked, order_.from, path_);
    const std::string blocker = name_beside(path_, ".blocking-");
    Leftover leftover(blocker);
    if (::symlink(sentence.c_str(), blocker.c_str()) != 0) {
      return restore_failure(blocker, "cannot be created");
    }
    if (::rename(blocker.c_str(), path_.c_str()) != 0)
      return restore_failure(path_, "cannot be renamed");
    leftover.let_go();
    if (Done synced = sync_folder(path_); !synced) return synced;
    crash_point(CrashPoint::restore_blocked);
    return {};
  }

  Done put_in_place() {
    for (const char* const suffix : {"-wal", "-shm", "-journal"}) {
      const std::string name = path_ + suffix;
      if (::unlink(name.c_str()) != 0 && errno != ENOENT)
        return restore_failure(name, "cannot be deleted");
    }
    if (Done synced = sync_folder(path_); !synced) return synced;
    if (::rename(next_.c_str(), path_.c_str()) != 0)
      return restore_failure(path_, "cannot be renamed");
    leftover_->let_go();
    crash_point(CrashPoint::restore_named);
    return sync_folder(path_);
  }

  const RestoreOrder& order_;
  std::string path_;
  std::string next_;
  std::optional<OwnerLock> lock_;
  std::optional<Leftover> leftover_;
  Restored restored_;
};

}  // namespace

std::optional<std::string> interrupted_restore_at(const std::string& path) {
  std::error_code code;
  std::string target = std::filesystem::read_symlink(path, code).string();
  if (code || !target.starts_with(blocked)) return std::nullopt;
  return target;
}

std::expected<Restored, StoreFileError> restore_file(const RestoreOrder& order) {
  return Restoring(order, real_path(order.path)).restore();
}

}  // namespace idem::sqlite
