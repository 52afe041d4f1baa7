#include "core/bytes/last_words.hpp"
#include "store/log/database.hpp"
#include "store/log/index_failure.hpp"
#include "store/log/index_options.hpp"
#include "store/log/index_repair.hpp"
#include "store/log/index_watch.hpp"
#include "store/log/meta.hpp"

#include <rocksdb/db.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/utilities/write_batch_with_index.h>

#include <algorithm>
#include <filesystem>
#include <utility>

/// The index in RocksDB: how it is opened and read, and what becomes of damage to it.
namespace idem::segments {
namespace {

using ::rocksdb::Status;

/// In `meta`: the families that a process has found damaged.
constexpr std::string_view meta_damaged = "damaged";

std::optional<Family> family_named(const std::string& name) {
  const auto found = std::ranges::find(family_names, name);
  if (found == family_names.end()) return std::nullopt;
  return static_cast<Family>(found - family_names.begin());
}

}  // namespace

void IndexWatch::OnCompactionCompleted(::rocksdb::DB*, const ::rocksdb::CompactionJobInfo& job) {
  if (!is_of_damage(job.status)) return;
  if (const auto family = family_named(job.cf_name)) {
    found_.fetch_or(std::uint64_t{1} << static_cast<std::uint8_t>(*family));
  }
}

// Else every write would fail from now on, and end the process.
void IndexWatch::OnBackgroundError(::rocksdb::BackgroundErrorReason reason, Status* error) {
  if (reason != ::rocksdb::BackgroundErrorReason::kCompaction || !is_of_damage(*error)) return;
  *error = Status::OK();
}

bool IndexWatch::is_of_damage(const Status& status) noexcept {
  return status.IsCorruption() || (status.IsIOError() && !status.IsNoSpace());
}

Status Database::open_index(Strict strict) {
  auto options = is_look_ ? index_options_of_look(sizes_) : index_options(sizes_);
  if (!opens_all_) options.max_open_files = index_options(sizes_).max_open_files;
  options.paranoid_checks = strict == Strict::yes;
  watch_ = std::make_shared<IndexWatch>();
  options.listeners.push_back(watch_);
  const std::string index = mended_ ? mended_->folder() : index_of(path_);
  const DamageMet damage(lacking(path_, "RocksDB cannot read its index"));
  if (has_a_list_twice(index)) return Status::Corruption("the list of its files is there twice");
  seen_ =
      std::make_unique<::rocksdb::WriteBatchWithIndex>(::rocksdb::BytewiseComparator(), 0, true);
  if (is_look_) return open_to_read(options, index);
  ::rocksdb::DB* db = nullptr;
  const Status opened = ::rocksdb::DB::Open(options, index, index_families(sizes_), &handles_, &db);
  db_.reset(db);
  return opened;
}

/// The families that the list of files names. A process that was killed in renew() leaves one out,
/// after it noted that.
Status Database::open_to_read(const ::rocksdb::DBOptions& options, const std::string& index) {
  std::vector<std::string> listed;
  if (Status read = ::rocksdb::DB::ListColumnFamilies(options, index, &listed); !read.ok()) {
    return read;
  }
  Families absent;
  std::vector<::rocksdb::ColumnFamilyDescriptor> families;
  for (const auto& family : index_families(sizes_)) {
    if (std::ranges::find(listed, family.name) != listed.end()) {
      families.push_back(family);
    } else {
      absent.add(*family_named(family.name));
    }
  }
  ::rocksdb::DB* db = nullptr;
  const Status opened = ::rocksdb::DB::OpenForReadOnly(options, index, families, &handles_, &db);
  db_.reset(db);
  if (!opened.ok() || absent.is_empty()) return opened;
  for (std::size_t i = 0; i < family_count; ++i) {
    if (!absent.has(static_cast<Family>(i))) continue;
    handles_.insert(handles_.begin() + static_cast<std::ptrdiff_t>(i), nullptr);
  }
  const auto noted = noted_damage();
  const Families lost = absent.without(noted ? noted->both(derived_families) : Families());
  if (lost.is_empty()) return opened;
  close_index();
  return Status::Corruption("the list of its files lacks its " + lost.text());
}

void Database::close_index() {
  for (auto* const one : std::exchange(handles_, {})) {
    if (one != nullptr) db_->DestroyColumnFamilyHandle(one);
  }
  if (db_) ::rocksdb::CancelAllBackgroundWork(db_.get(), true);
  db_.reset();
}

/// Of an index that opens only if nothing is asked of its files: whether some are gone or damaged,
/// of derived families alone. An error: what was in one is nowhere else.
std::expected<bool, StoreError> Database::judge_files() {
  const DamageMet damage(damaged(path_, "RocksDB cannot read a file of its index"));
  std::vector<::rocksdb::LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  const ::rocksdb::DBOptions options = index_options_of_look(sizes_);
  const auto families = index_families(sizes_);
  std::string first;
  for (const auto& file : files) {
    const auto family = family_named(file.column_family_name);
    if (!family) continue;
    const std::string path = index_of(path_) + "/" + file.relative_filename;
    ::rocksdb::SstFileReader reader(
        ::rocksdb::Options(options, families[static_cast<std::size_t>(*family)].options));
    std::error_code code;
    if (std::filesystem::file_size(path, code) == file.size && reader.Open(path).ok()) continue;
    unopened_.add(*family);
    if (first.empty() && !derived_families.has(*family)) first = path;
  }
  // A file of another index is whole.
  if (unopened_.is_empty()) unopened_ = unreadable_of(*this, Families::all());
  const Families lost = unopened_.without(derived_families);
  if (lost.is_empty()) return !unopened_.is_empty();
  return std::unexpected(
      StoreError{StoreError::Code::refused, path_ + ": is damaged: " + not_derived(lost, first)});
}

/// Makes families anew, empty, of which files are gone or damaged, and notes it, so that the start
/// fills them.
std::expected<void, StoreError> Database::renew_unopened(const DatabaseSettings& how,
                                                         const Families& unopened) {
  RunningSection running;
  const std::unique_ptr<Database> made(new Database(how, running));
  if (const Status opened = made->open_index(Strict::no); !opened.ok()) {
    return std::unexpected(database_failure(how.path, opened));
  }
  if (auto rest = made->open_rest(how, false); !rest) return rest;
  const auto noted = made->noted_damage();
  const auto refused_with = [&](const std::string& why) {
    return std::unexpected(StoreError{StoreError::Code::refused, how.path + ": " + why});
  };
  if (!noted) return refused_with("is damaged: " + noted.error());
  made->note_damage(Families(noted->bits() | unopened.bits()));
  if (const auto done = made->renew(unopened); !done) return refused_with(done.error());
  return {};
}

std::expected<bool, std::string> Database::get(Family family, std::string_view key,
                                               std::string& value) {
  if (handle(family) == nullptr) return false;
  // A look has in `seen_` what the log has beside the index.
  const Status status =
      is_look_ ? seen_->GetFromBatchAndDB(db_.get(), {}, handle(family), slice(key), &value)
               : db_->Get({}, handle(family), slice(key), &value);
  if (status.ok()) return true;
  if (status.IsNotFound()) return false;
  note(family);
  return std::unexpected("its " + std::string(words_of(family)) +
                         " cannot be read: " + words_of(status, path_));
}

std::expected<bool, std::string> Database::find(Family family, std::string_view key,
                                                std::string& value) {
  if (handle(family) == nullptr) return false;
  const Status status = seen_->GetFromBatchAndDB(db_.get(), {}, handle(family), slice(key), &value);
  if (status.ok()) return true;
  if (status.IsNotFound()) return false;
  note(family);
  return std::unexpected(words_of(status, path_));
}

IndexCursor Database::iterate(Family family) {
  if (handle(family) == nullptr) {
    return IndexCursor(std::unique_ptr<::rocksdb::Iterator>(::rocksdb::NewEmptyIterator()));
  }
  std::unique_ptr<::rocksdb::Iterator> at(db_->NewIterator({}, handle(family)));
  if (seen_->GetWriteBatch()->Count() > 0) {
    at.reset(seen_->NewIteratorWithBase(handle(family), at.release()));
  }
  return IndexCursor(std::move(at));
}

bool Database::is_sound(const IndexCursor& at, Family family) {
  if (at.status().ok()) return true;
  note(family);
  return false;
}

bool Database::check(const IndexCursor& at, Family family) {
  if (at.status().ok()) return true;
  fail_step(family, words_of(at.status(), path_));
  return false;
}

void Database::fail_step(Family family, std::string why) {
  note(family);
  const char* const advice =
      derived_families.has(family)
          ? ". Nothing is lost: the next start makes them anew (idem store reindex)"
          : ". They are nowhere else: restore a backup (idem store restore)";
  failed_step_ =
      StoreError{StoreError::Code::damaged, "the " + std::string(words_of(family)) + " of " +
                                                path_ + " cannot be read: " + why + advice};
}

std::optional<StoreError> Database::take_damage() { return std::exchange(failed_step_, {}); }

void Database::note(Family family) {
  if (is_look_ || noted_.has(family)) return;
  noted_.add(family);
  write_noted();
}

void Database::write_noted() { Meta(*this).put_number(meta_damaged, noted_.bits()); }

std::expected<Families, std::string> Database::noted_damage() {
  const auto bits = Meta(*this).number(meta_damaged);
  if (!bits) return std::unexpected(bits.error());
  if (!is_look_) noted_ = Families(bits->value_or(0));
  return Families(bits->value_or(0));
}

void Database::note_damage(const Families& families) {
  noted_ = families;
  write_noted();
  commit();
}

/// What compactions have met by now. They are over for these families: each would fail, and writes
/// would wait for them.
void Database::look_after_compactions() {
  const Families found = watch_->take();
  if (found.is_empty()) return;
  for (std::size_t i = 0; i < family_count; ++i) {
    const auto family = static_cast<Family>(i);
    if (!found.has(family)) continue;
    note(family);
    (void)db_->SetOptions(handles_[i], {{"disable_auto_compactions", "true"}});
  }
}

// Once all is flushed, no frame that a start repeats names a family that is gone.
std::expected<void, std::string> Database::renew(const Families& families) {
  ::rocksdb::FlushOptions now;
  now.allow_write_stall = true;
  Status status = db_->Flush(now, handles_);
  const auto all = index_families(sizes_);
  for (std::size_t i = 0; i < family_count && status.ok(); ++i) {
    if (!families.has(static_cast<Family>(i))) continue;
    auto*& handle = handles_[i];
    status = db_->DropColumnFamily(handle);
    if (!status.ok()) break;
    db_->DestroyColumnFamilyHandle(std::exchange(handle, nullptr));
    status = db_->CreateColumnFamily(all[i].options, all[i].name, &handle);
  }
  if (status.ok()) return {};
  return std::unexpected("its " + families.text() +
                         " cannot be made anew: " + words_of(status, path_));
}

}  // namespace idem::segments
