#include "store/log/database.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "core/bytes/last_words.hpp"
#include "core/bytes/rfc3339.hpp"
#include "store/embedded/room_on_disk.hpp"
#include "store/file_access.hpp"
#include "store/log/files.hpp"
#include "store/log/index_failure.hpp"
#include "store/log/index_options.hpp"
#include "store/log/making.hpp"
#include "store/log/newest_record.hpp"
#include "store/log/numbered_value.hpp"
#include "store/record_rows.hpp"

#include <fmt/format.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/utilities/write_batch_with_index.h>

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace idem::segments {
namespace {

using ::rocksdb::Status;

/// What an entry of the table of ids uses until it is in a file.
constexpr std::size_t index_entry_bytes = 64;
/// The log's file grows by half of this, and RocksDB writes less than the other half.
constexpr std::uint64_t index_start_bytes = 8UL << 20U;
/// The most that a start writes to end one attempt of a killed process: its version, in a frame and
/// in its file, and lines of lists.
constexpr std::uint64_t cut_off_attempt_bytes = 8UL << 10U;
/// The look of a start asks for no id, so it needs no filters of them.
constexpr std::size_t cache_of_a_look = 1UL << 20U;

std::unexpected<StoreError> refused(std::string detail) {
  return std::unexpected(StoreError{StoreError::Code::refused, std::move(detail)});
}

/// RocksDB would make a new index, and the log a new secret. Empty: both parts are there.
std::string missing_part(const std::string& path) {
  std::error_code code;
  const std::filesystem::path store = path;
  if (!std::filesystem::exists(store / "commits" / "format", code)) return "its log is missing";
  if (!std::filesystem::exists(store / "index" / "CURRENT", code)) return "its index is missing";
  return {};
}

/// The number of the frame that the index ends with.
constexpr std::string_view last_frame_key = "last_frame";

/// None: it is damaged, or of another shard's log.
std::optional<std::uint64_t> parse_last_frame(std::string_view value, const StoreTag& tag) {
  const auto sound = without_checksum(RecordId{tag}, value, last_frame_key);
  if (!sound || sound->size() != sizeof(std::uint64_t)) return std::nullopt;
  return ByteReader(*sound).number<std::uint64_t>();
}

}  // namespace

std::optional<std::string> why_no_room_to_start(const std::string& path, const LogSizes& sizes,
                                                const RunningSection& running) {
  std::uint64_t needed = index_start_bytes;
  running.visit([&](const embedded::RunningCells::Found&) { needed += cut_off_attempt_bytes; });
  return embedded::why_too_full(path, needed, sizes.segment_bytes + index_start_bytes);
}

std::expected<std::unique_ptr<Database>, StoreError> Database::open(const DatabaseSettings& how,
                                                                    RunningSection& running) {
  auto making = Making::begin(how.path);
  if (!making) return std::unexpected(std::move(making.error()));
  if (const auto why = why_no_room_to_start(how.path, how.sizes, running)) {
    return refused(how.path + ": " + *why);
  }
  if (!making->is_new()) {
    if (auto ready = make_ready(how); !ready) return std::unexpected(std::move(ready.error()));
  }
  std::unique_ptr<Database> made(new Database(how, running));
  const Status opened = made->open_index(Strict::yes);
  if (!opened.ok()) return std::unexpected(database_failure(how.path, opened));
  if (auto rest = made->open_rest(how, making->is_new()); !rest) {
    return std::unexpected(std::move(rest.error()));
  }
  if (const auto why = why_no_room_to_start(how.path, how.sizes, running)) {
    return refused(how.path + ": " + *why);
  }
  if (!making->finish()) {
    return refused(file_failure(how.path, "cannot be written to", errno));
  }
  if (const auto started = made->mark_.start(); !started) return refused(started.error());
  made->making_.emplace(std::move(*making));
  made->index_ = embedded::PathInUse(index_of(how.path));
  made->ids_.start();
  return made;
}

/// RocksDB deletes the files that its list does not name as soon as it opens an index for writing,
/// and of an older list these are the newest. So a start looks first, and refuses what the look
/// refuses: nothing is changed by then.
std::expected<void, StoreError> Database::make_ready(const DatabaseSettings& how) {
  remove_mended_copies(how.path);
  bool is_torn = false;
  Families unopened;
  {
    DatabaseSettings alone = how;
    alone.is_alone = alone.is_start = true;
    alone.sizes.cache_bytes = std::min(alone.sizes.cache_bytes, cache_of_a_look);
    RunningSection unused;
    const auto looked = look(alone, unused);
    if (!looked) return std::unexpected(looked.error());
    is_torn = (*looked)->mended_.has_value();
    unopened = (*looked)->unopened_;
  }
  if (is_torn && !end_torn_manifest(index_of(how.path))) {
    return refused(file_failure(how.path, "cannot be written to", errno));
  }
  if (unopened.is_empty()) return {};
  return renew_unopened(how, unopened);
}

/// What is beside the index.
std::expected<void, StoreError> Database::open_rest(const DatabaseSettings& how, bool is_new) {
  for (const auto& files : {log_.open(), records_.open()}) {
    if (!files) return refused(files.error());
  }
  const StoreTag& tag = log_.tag();
  if (is_new && !ProgressMark::make(path_, tag, {.at = wall_time()})) {
    return refused(file_failure(how.path, "cannot be written to", errno));
  }
  using Step = std::expected<void, std::string>;
  Step done = mark_.read(tag);
  if (done) done = ids_.open(tag);
  if (done) done = catch_up();
  if (!done) return refused(damaged(path_, done.error()));
  return {};
}

std::expected<std::unique_ptr<Database>, StoreError> Database::look(const DatabaseSettings& how,
                                                                    RunningSection& running) {
  std::unique_ptr<Database> made(new Database(how, running));
  made->is_look_ = true;
  made->is_alone_ = how.is_alone;
  if (const std::string lacks = missing_part(how.path); !lacks.empty()) {
    return refused(lacking(how.path, lacks));
  }
  Status opened = made->open_index(Strict::yes);
  if (how.is_start && is_kept_out(opened)) {
    // There may be more files than this process may have open at once.
    made->opens_all_ = false;
    opened = made->open_index(Strict::yes);
  }
  if (opened.IsCorruption() && how.is_alone) {
    if (auto mended = MendedIndex::of(index_of(how.path))) {
      made->mended_.emplace(std::move(*mended));
      // A start brings the list back otherwise, and judges the files that it names.
      if (const Status again = made->open_index(Strict::yes); again.ok()) {
        opened = again;
      } else {
        made->mended_.reset();
      }
    }
  }
  if (!opened.ok()) {
    // Beside a process it was deleting a file, and another look does not meet that.
    const bool may_read = how.is_alone && !is_kept_out(opened) && made->open_index(Strict::no).ok();
    const auto judged = may_read ? made->judge_files() : false;
    if (!judged && !(may_read && how.is_recovery)) return std::unexpected(judged.error());
    if (judged && !*judged) return std::unexpected(database_failure(how.path, opened));
  }
  // The log last: it has what the others have not yet.
  const auto log = made->log_.look_at_format();
  if (!log) return refused(how.path + ": " + log.error());
  // Before the log, which goes on meanwhile.
  const StoreTag& tag = made->log_.tag();
  using Step = std::expected<void, std::string>;
  Step read = made->mark_.read(tag);
  if (!read) return refused(damaged(how.path, read.error()));
  read = made->ids_.look(tag);
  // A recovery reads each version, and finds by them what the ids had.
  made->lacks_ids_ = !read && how.is_recovery;
  if (!read && !made->lacks_ids_) return refused(damaged(how.path, read.error()));
  Step looked = made->records_.look(how.is_start ? Holding::few : Holding::all);
  if (looked) looked = made->log_.look();
  if (!looked) return refused(how.path + ": " + looked.error());
  if (const Step done = made->catch_up(); !done) {
    return refused(damaged(how.path, done.error()));
  }
  return made;
}

namespace {

std::vector<IdEntry> entries_in(std::string_view bytes) {
  std::vector<IdEntry> entries;
  for (std::size_t at = 0; at + IdEntry::bytes <= bytes.size(); at += IdEntry::bytes) {
    entries.push_back(read_entry(bytes.data() + at));
  }
  return entries;
}

}  // namespace

std::expected<void, std::string> Database::catch_up() {
  std::string value;
  const auto found = get(Family::meta, last_frame_key, value);
  if (!found) return std::unexpected(found.error());
  const auto last = *found ? parse_last_frame(value, log_.tag()) : std::optional<std::uint64_t>(0);
  if (!last) return std::unexpected("the end of its index is damaged, or of another shard's");
  const std::uint64_t saved_ids = ids_.saved_to();
  std::string damage;
  NewestRecord newest;
  bool is_first = true;
  const auto replayed = log_.replay([&](const CommitLog::Frame& frame) {
    // Before anything reaches the index, which would know the later frames alone at the next start.
    if (is_first && !is_recovery_ && frame.number > std::min(*last, saved_ids) + 1) {
      damage = "its index is missing, or older than its log";
    }
    is_first = false;
    ByteReader in(frame.rest);
    const auto place = in.number<std::uint64_t>();
    const std::string_view running = in.framed();
    const std::string_view changes = in.framed();
    const std::string_view ids = in.framed();
    const auto applied = running_->apply(running);
    if (!applied && damage.empty()) damage = applied.error();
    if (in.is_cut_short() && damage.empty()) damage = "a frame of its log is damaged";
    if (!damage.empty()) return;
    newest.see(frame.versions);
    if (!records_.write_again(place, frame.versions) && !is_recovery_) {
      damage = "a file of its records is missing";
      return;
    }
    records_.go_on_at(place + frame.versions.size());
    if (frame.number > saved_ids) ids_.apply(entries_in(ids), frame.number);
    if (frame.number <= *last) return;
    if (!write_to_index(changes)) damage = "its index is of an earlier moment than its log";
  });
  if (!replayed) return replayed;
  if (damage.empty()) damage = why_too_short(std::max(*last, saved_ids));
  if (!damage.empty()) return std::unexpected(damage);
  found_end_ = {.newest_record = newest.moment(*running_), .stopped_at = mark_.value().stopped_at};
  if (log_.is_in_a_file()) saved_parts_ = 0;
  return {};
}

/// `indexed`: the last commit that index and table of ids have. Empty: the log has all that is
/// known to have been durable.
std::string Database::why_too_short(std::uint64_t indexed) const {
  const ProgressMark::Value& mark = mark_.value();
  const bool is_marked = mark.commit > log_.last_number();
  std::string before;
  if (is_marked && !accepts_short_log_) before = "mark";
  // Versions are written to their files after their frame.
  if (is_alone_ && records_.goes_beyond_its_end()) before = "versions";
  if (log_.last_number() < indexed) before = "index";
  if (before.empty()) return {};
  std::string why = fmt::format("its log ends before its {}: with commit {} in {}", before,
                                log_.last_number(), log_.where_it_ends());
  if (is_marked) {
    why += fmt::format(", and commit {} was durable at {}", mark.commit, to_rfc3339(mark.at));
  }
  return why;
}

/// False: it names a family that was made anew since.
bool Database::write_to_index(std::string_view changes) {
  ::rocksdb::WriteBatch batch{std::string(changes)};
  const Status status =
      is_look_ ? copy_changes(batch, *seen_, handles_) : db_->Write(without_log(), &batch);
  if (status.IsInvalidArgument()) return false;
  if (!status.ok()) fail_closed(status, "catching up with the log");
  return true;
}

void Database::begin_file_of_log() {
  while (saved_parts_ < save_parts) save_part();
  saved_parts_ = 0;
  note_what_is_saved();
}

/// What index and files have on the disk by now is not needed in the log.
void Database::note_what_is_saved() {
  ::rocksdb::ReadOptions in_files;
  in_files.read_tier = ::rocksdb::kPersistedTier;
  std::string value;
  const Status status = db_->Get(in_files, handle(Family::meta), slice(last_frame_key), &value);
  const auto indexed = status.ok() ? parse_last_frame(value, log_.tag()) : std::nullopt;
  log_.allow_reuse(std::min({indexed.value_or(0), records_.synced_to(), ids_.saved_to()}));
}

/// One of what is due for each file of the log. Their threads take processor and disk from the
/// commits, so each part begins a quarter of a file after the one before.
void Database::save_part() {
  switch (saved_parts_++) {
    case 0:
      records_.sync_later();
      break;
    case 1:
      ids_.save_later();
      break;
    default:
      flush_index();
      break;
  }
}

void Database::flush_index() {
  ::rocksdb::FlushOptions later;
  later.wait = false;
  later.allow_write_stall = true;
  const Status asked = db_->Flush(later, handles_);
  // While RocksDB lets writes wait, the next file of the log asks again.
  if (!asked.ok() && !asked.IsTryAgain()) fail_closed(asked, "flush");
}

std::optional<std::string> Database::why_not_opened(std::uint64_t place) {
  return records_.why_not_opened(path_, place);
}

std::string Database::what_is_lost() {
  std::string lost = log_.what_is_lost();
  if (lost.empty()) lost = ids_.what_is_lost();
  if (lost.empty()) {
    has_saved_all_ = false;
  } else if (index_.what_is_wrong().empty() && !std::exchange(has_saved_all_, true)) {
    save_all();
  }
  return lost;
}

void Database::save_all() {
  records_.sync_later();
  ids_.save();
  background_.wait();
  ::rocksdb::FlushOptions now;
  now.allow_write_stall = true;
  const Status flushed = db_->Flush(now, handles_);
  if (!flushed.ok()) fail_closed(flushed, "flush");
}

Database::Database(const DatabaseSettings& how, RunningSection& running)
    : path_(how.path),
      accepts_short_log_(how.accepts_short_log),
      is_recovery_(how.is_recovery),
      sizes_(how.sizes),
      running_(&running),
      mark_(how.path, how.mark_each),
      log_(how.path + "/commits", how.sizes.segment_bytes, background_),
      records_(how.path + "/records", how.sizes, background_),
      ids_(how.path + "/ids",
           {.memtable_entries = how.sizes.buffer_bytes / index_entry_bytes,
            .cache_bytes = how.sizes.cache_bytes - index_cache_bytes(how.sizes)}),
      batch_(std::make_unique<::rocksdb::WriteBatch>()) {}

Database::~Database() {
  // Before RocksDB's lock goes: what they write, another process must not meet.
  mark_.stop();
  background_.stop();
  ids_.stop();
  if (!is_look_ && db_ && !index_.what_is_wrong().empty()) {
    // RocksDB would write to this path what belongs to a directory that was moved away.
    (void)db_->PauseBackgroundWork();
    abandon(db_.release(), std::move(handles_));
    return;
  }
  close_index();
}

void Database::append(Family family, std::string_view key, std::string_view value) {
  batch_->Put(handle(family), slice(key), slice(value));
}
void Database::remove(Family family, std::string_view key) {
  batch_->Delete(handle(family), slice(key));
}
void Database::put(Family family, std::string_view key, std::string_view value) {
  seen_->Put(handle(family), slice(key), slice(value));
}
void Database::erase(Family family, std::string_view key) {
  seen_->Delete(handle(family), slice(key));
}

bool Database::has_written() const noexcept {
  return batch_->Count() > 0 || !id_changes_.empty() || running_->has_changed() ||
         seen_->GetWriteBatch()->Count() > 0;
}

void Database::commit() {
  look_after_compactions();
  if (seen_->GetWriteBatch()->Count() > 0) {
    const Status copied = copy_changes(*seen_->GetWriteBatch(), *batch_, handles_);
    if (!copied.ok()) fail_closed(copied, "commit");
    seen_->Clear();
  }
  if (batch_->Count() == 0 && id_changes_.empty() && !running_->has_changed()) return;
  // All running records at the beginning of each file, so that a start need not read those before.
  const bool is_whole = log_.begins_file();
  if (is_whole) begin_file_of_log();
  append(Family::meta, last_frame_key,
         numbered_value(last_frame_key, log_.last_number() + 1, log_.tag()));
  build_frame(batch_->Data(), is_whole);
  log_.append(versions_, frame_);
  mark_.note(log_.last_number());
  records_.append(versions_, log_.last_number());
  const Status status = db_->Write(without_log(), batch_.get());
  if (!status.ok()) fail_closed(status, "commit");
  ids_.apply(id_changes_, log_.last_number());
  while (saved_parts_ < std::min(save_parts, 1 + log_.quarters())) save_part();
  if (log_.wants_next()) {
    note_what_is_saved();
    log_.prepare_next();
  }
  batch_->Clear();
  versions_.clear();
  id_changes_.clear();
}

/// What the log has of a commit besides its versions: see catch_up().
void Database::build_frame(std::string_view changes, bool is_whole) {
  frame_.assign(sizeof(std::uint64_t) + sizeof(std::uint32_t), '\0');
  running_->write(frame_, is_whole);
  ByteWriter head(frame_.data());
  head.number(records_.next());
  head.number(
      static_cast<std::uint32_t>(frame_.size() - sizeof(std::uint64_t) - sizeof(std::uint32_t)));
  append_framed(changes);
  ids_bytes_.resize(id_changes_.size() * IdEntry::bytes);
  for (std::size_t i = 0; i < id_changes_.size(); ++i) {
    write_entry(id_changes_[i], ids_bytes_.data() + i * IdEntry::bytes);
  }
  append_framed(ids_bytes_);
}

void Database::append_framed(std::string_view bytes) {
  const std::size_t at = frame_.size();
  frame_.resize(at + framed_bytes(bytes));
  ByteWriter(frame_.data() + at).framed(bytes);
}

void Database::fail_closed(const Status& status, std::string_view doing) const noexcept {
  fail_closed(words_of(status, path_), doing);
}

void Database::fail_closed(std::string_view why, std::string_view doing) const noexcept {
  say_last_words("idem: log store failed path=" + path_ + " doing=" + std::string(doing) + ": " +
                 std::string(why) + "; stopping");
  std::abort();
}

}  // namespace idem::segments
