#include "store/sqlite/recover_file.hpp"

#include "core/naming/copied_identity.hpp"
#include "store/file_access.hpp"
#include "store/recovering.hpp"
#include "store/restoring.hpp"
#include "store/sqlite/backup_file.hpp"
#include "store/sqlite/check_file.hpp"
#include "store/sqlite/found_rows.hpp"
#include "store/sqlite/log_doubts.hpp"
#include "store/sqlite/migrations.hpp"
#include "store/sqlite/open_database.hpp"
#include "store/sqlite/owner_lock.hpp"
#include "store/sqlite/restore_file.hpp"
#include "store/sqlite/snapshot.hpp"
#include "store/sqlite/sqlite_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>

namespace idem::sqlite {
namespace {

using Kind = StoreFileError::Kind;
using Done = std::expected<void, StoreFileError>;
using LogKind = LogJudgement::Kind;

std::unexpected<StoreFileError> recovery_failure(const std::string& path, std::string_view why) {
  return std::unexpected(StoreFileError{Kind::failed, fmt::format("{}: {}", path, why)});
}

/// Of the store itself, by the names and values of which records are found.
constexpr const char* tables_as_they_are[] = {
    "idem_meta",    "idem_digest_secrets", "idem_route_names", "idem_evidence",
    "idem_journal", "idem_outbox",         "idem_flows"};

class Recovering {
 public:
  explicit Recovering(const RecoverOrder& order)
      : order_(order),
        from_(real_path(order.from)),
        log_(from_ + "-wal"),
        pages_(name_beside(order.to, ".pages-")),
        next_(name_beside(order.to, ".part-")),
        lock_(from_) {}

  std::expected<Recovered, StoreFileError> recover() {
    for (Done (Recovering::* const step)() :
         {&Recovering::check_place, &Recovering::look, &Recovering::begin, &Recovering::put_found,
          &Recovering::settle, &Recovering::name}) {
      if (Done done = (this->*step)(); !done) return std::unexpected(std::move(done.error()));
    }
    return std::move(recovered_);
  }

 private:
  Done check_place() {
    if (auto why = why_not_recovered(order_)) return std::unexpected(std::move(*why));
    if (const auto why = interrupted_restore_at(from_)) {
      return std::unexpected(StoreFileError{Kind::refused, from_ + ": " + *why});
    }
    if (const auto why = why_log_has_no_database(from_)) {
      return std::unexpected(StoreFileError{Kind::refused, from_ + ": " + *why});
    }
    if (::access(from_.c_str(), R_OK) != 0 || !lock_.is_open()) {
      const bool is_missing = errno == ENOENT || errno == ENOTDIR;
      return std::unexpected(StoreFileError{is_missing ? Kind::not_found : Kind::failed,
                                            file_failure(from_, "cannot be opened", errno)});
    }
    if (const int error = lock_.take(); error != 0) return not_locked(from_, error);
    return {};
  }

  /// What a start would read, and what the log has beyond it.
  Done look() {
    auto judged = copy_pages_with_log();
    if (!judged) return std::unexpected(std::move(judged.error()));
    if (const auto why = why_log_is_of_another(from_, *judged)) {
      return std::unexpected(StoreFileError{Kind::refused, from_ + ": " + *why});
    }
    auto seen = Snapshot::open(from_);
    if (seen) seen_ = std::move(*seen);
    auto patched = Snapshot::open(pages_);
    if (patched) patched_ = std::move(*patched);
    if (!seen_ && !patched_) return std::unexpected(std::move(seen.error()));
    sqlite3* const db = seen_ ? seen_->db() : nullptr;
    const bool lacks = judged->kind == LogKind::torn || why_log_refuses(log_, *judged, db) ||
                       doubt_of_log(log_, *judged, db);
    if (!lacks) return {};
    recovered_.lacks_keys = true;
    recovered_.lacks_from = newest_moment_in(db);
    return {};
  }

  /// The database with each page of the log that is as it was written, also after damage: it may
  /// not fit together.
  std::expected<LogJudgement, StoreFileError> copy_pages_with_log() {
    std::error_code code;
    std::filesystem::copy_file(from_, pages_, code);
    if (code) return recovery_failure(pages_, "cannot be written: " + code.message());
    const int file = ::open(pages_.c_str(), O_RDWR | O_CLOEXEC);
    make_up_for_lost_pages(file);
    std::map<std::uint32_t, std::string> commit;
    bool is_written = file >= 0;
    auto judged =
        read_log(log_, [&](std::uint32_t page, std::string_view bytes, std::uint32_t size) {
          commit[page] = bytes;
          if (size == 0) return;
          for (const auto& [number, content] : commit) {
            const auto at = static_cast<off_t>(content.size()) * (number - 1);
            is_written = is_written && ::pwrite(file, content.data(), content.size(), at) ==
                                           static_cast<ssize_t>(content.size());
          }
          commit.clear();
          is_written =
              is_written && ::ftruncate(file, static_cast<off_t>(bytes.size()) * size) == 0;
        });
    if (file >= 0) ::close(file);
    if (!judged) return recovery_failure(from_, judged.error());
    if (!is_written)
      return recovery_failure(pages_, "cannot be written; look for room on its disk");
    return std::move(*judged);
  }

  /// SQLite opens no file that is shorter than its header says. Zeros in the place of lost pages
  /// read as damage.
  static void make_up_for_lost_pages(int file) {
    std::array<unsigned char, 32> header{};
    struct stat state{};
    if (::pread(file, header.data(), header.size(), 0) != header.size()) return;
    const auto number = [&](std::size_t at, std::size_t bytes) {
      std::uint64_t value = 0;
      for (std::size_t i = 0; i < bytes; ++i) value = value << 8U | header[at + i];
      return value;
    };
    // SQLite's file format, section 1.3; a page of 65,536 bytes is written as 1.
    const std::uint64_t page = number(16, 2) == 1 ? 65'536 : number(16, 2);
    const std::uint64_t whole = page * number(28, 4);
    const bool is_short = ::fstat(file, &state) == 0 && state.st_size > 0 &&
                          static_cast<std::uint64_t>(state.st_size) < whole;
    // A damaged header may ask for anything; a cut leaves the greater part.
    if (is_short && whole <= 2 * static_cast<std::uint64_t>(state.st_size)) {
      (void)::ftruncate(file, static_cast<off_t>(whole));
    }
  }

  /// What a start would take, with the tables of a service, if it opens; else the store's own
  /// tables anew.
  Done begin() {
    is_as_seen_ = seen_ &&
                  copy_pages(seen_->db(), next_, std::nullopt, order_.progress).has_value() &&
                  open_next();
    if (is_as_seen_) return {};
    for (Snapshot* const view : {seen_.get(), patched_.get()}) {
      if (view == nullptr) continue;
      remove_next();
      if (Done made = make_next(view->db()); !made) return made;
      if (!open_next()) continue;
      recovered_.lacks_keys = true;
      recovered_.lacks_from.reset();
      recovered_.notes.push_back(
          "its pages do not fit together, so each row was read on its own: tables that are not the "
          "store's were left out");
      return {};
    }
    return std::unexpected(StoreFileError{
        Kind::refused, from_ + ": what names its records cannot be read: " + why_not_open_ +
                           ". Bring back a copy of the file"});
  }

  bool open_next() {
    copied_ = std::make_shared<CopiedIdentity>();
    copied_->is_snapshot = true;
    SqliteOptions how;
    how.which.make = false;
    how.which.copied = copied_;
    auto opened = open_sqlite(next_, {}, how);
    if (!opened) {
      why_not_open_ = opened.error().detail;
      return false;
    }
    store_ = std::move(*opened);
    return true;
  }

  void remove_next() { const Leftover leftover(next_); }

  Done make_next(sqlite3* from) {
    const int file = ::open(next_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) return recovery_failure(next_, std::strerror(errno));
    ::close(file);
    sqlite3* db = nullptr;
    const int code =
        sqlite3_open_v2(next_.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, nullptr);
    const Connection connection(db);
    std::string script = "PRAGMA synchronous=OFF; BEGIN;";
    for (const Migration& migration : migrations()) script += migration.sql;
    script += fmt::format("PRAGMA application_id={}; PRAGMA user_version={};", application_id,
                          migrations().back().version);
    if (code != SQLITE_OK || !text_value(db, script.c_str())) {
      return recovery_failure(next_, sqlite3_errmsg(db));
    }
    for (const char* const table : tables_as_they_are) {
      if (copy_rows(from, db, table)) continue;
      recovered_.notes.push_back(fmt::format("{} cannot be read to its end", table));
    }
    if (!text_value(db, "COMMIT")) return recovery_failure(next_, sqlite3_errmsg(db));
    return {};
  }

  Done put_found() {
    for (Snapshot* const view : {seen_.get(), patched_.get()}) {
      if (view == nullptr) continue;
      sqlite3* const db = view->db();
      RecoveredRecords records(*store_,
                               [db](const RecordId& id) { return found_evidence(db, id); });
      std::expected<void, StoreError> put;
      const auto see = [&](Record&& record) {
        put = records.put(std::move(record));
        return put.has_value();
      };
      const bool is_known = is_as_seen_ && view == seen_.get();
      const bool is_whole = is_known ? each_lossy_record(db, see) : each_found_record(db, see);
      if (put) put = records.flush();
      if (!put) return recovery_failure(next_, put.error().detail);
      if (is_known && !is_whole) recovered_.lacks_keys = true;
    }
    return {};
  }

  Done settle() {
    store_.reset();
    add_what_a_copy_lacks(recovered_, copied_at_in((seen_ ? seen_ : patched_)->db()));
    seen_.reset();
    patched_.reset();
    auto store = open_sqlite(next_, {}, {.as_recorded = true, .restored = true});
    if (!store) return recovery_failure(next_, store.error().detail);
    store->reset();
    if (Done noted = note_copied_at_in(next_, copied_at_of(recovered_)); !noted) return noted;
    auto report = check_file(next_, {});
    if (!report) return std::unexpected(std::move(report.error()));
    recovered_.made = std::move(*report);
    return give_to_owner(next_, order_.to);
  }

  /// A link fails where there is a file, also one that another process made meanwhile.
  Done name() {
    if (Done synced = sync_folder(next_); !synced) return synced;
    if (::link(next_.c_str(), order_.to.c_str()) != 0) {
      return recovery_failure(order_.to, fmt::format("cannot be named: {}", std::strerror(errno)));
    }
    return sync_folder(order_.to);
  }

  const RecoverOrder& order_;
  std::string from_;
  std::string log_;
  std::string pages_;
  std::string next_;
  Leftover pages_leftover_{pages_};
  Leftover next_leftover_{next_};
  OwnerLock lock_;
  std::unique_ptr<Snapshot> seen_;     ///< As a start would. Null: SQLite cannot.
  std::unique_ptr<Snapshot> patched_;  ///< With all pages of the log that are as written.
  bool is_as_seen_ = false;            ///< The new store began as a copy of it.
  std::shared_ptr<CopiedIdentity> copied_;
  std::unique_ptr<Store> store_;
  std::string why_not_open_;
  Recovered recovered_;
};

}  // namespace

std::expected<Recovered, StoreFileError> recover_file(const RecoverOrder& order) {
  return Recovering(order).recover();
}

}  // namespace idem::sqlite
