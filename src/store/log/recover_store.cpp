#include "store/log/recover_store.hpp"

#include "core/bytes/checksum.hpp"
#include "core/naming/copied_identity.hpp"
#include "core/record/stored_record_codec.hpp"
#include "core/record/stored_response_codec.hpp"
#include "store/embedded/room_on_disk.hpp"
#include "store/folder.hpp"
#include "store/log/check_store.hpp"
#include "store/log/compaction.hpp"
#include "store/log/heal_log.hpp"
#include "store/log/index_repair.hpp"
#include "store/log/journal_lines.hpp"
#include "store/log/keys.hpp"
#include "store/log/look.hpp"
#include "store/log/meta.hpp"
#include "store/log/owner_lock.hpp"
#include "store/log/shards.hpp"
#include "store/recovering.hpp"
#include "store/restoring.hpp"

#include <idem/store_wait.hpp>

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

namespace idem::segments {
namespace {

namespace fs = std::filesystem;
using Kind = StoreFileError::Kind;
using Done = std::expected<void, StoreFileError>;

constexpr std::size_t read_bytes_at_once = 1UL << 20U;
constexpr std::size_t read_ids_at_once = 4'096;
/// Frames that a log was cut by: the index may have seen those of two files of it.
constexpr std::array<std::uint64_t, 5> cut_frames{0, 1, 64, 4'096, 65'536};

std::unexpected<StoreFileError> recovery_failure(const std::string& path, std::string_view why) {
  return std::unexpected(StoreFileError{Kind::failed, fmt::format("{}: {}", path, why)});
}

class RemovedAtEnd {
 public:
  explicit RemovedAtEnd(std::string path) : path_(std::move(path)) {}
  ~RemovedAtEnd() {
    std::error_code code;
    fs::remove_all(path_, code);
  }
  RemovedAtEnd(const RemovedAtEnd&) = delete;
  RemovedAtEnd& operator=(const RemovedAtEnd&) = delete;

 private:
  std::string path_;
};

/// What a shard of the copy has.
class ShardContent {
 public:
  explicit ShardContent(Look& shard) : running_(*shard.running), db_(*shard.db) {}

  /// Shows each version of a record that can be read. False: some present one cannot.
  bool each(const std::function<bool(Record&&)>& see) {
    bool goes_on = true;
    running_.visit([&](const embedded::RunningCells::Found& found) {
      auto record = decode_record(found.id, found.record);
      if (goes_on && record) goes_on = show_running(std::move(*record), see);
    });
    for (const std::uint32_t file : db_.files_of_versions()) {
      files_.insert(file);
      if (goes_on) goes_on = each_in(file, see);
    }
    return goes_on && each_behind_damage(see);
  }

  /// With its request, as each() shows those that run.
  bool show_running(Record record, const std::function<bool(Record&&)>& see) {
    if (!add_request(record)) lose_bytes(record);
    return see(std::move(record));
  }

  std::vector<EvidenceEntry> evidence(const RecordId& id) {
    std::vector<EvidenceEntry> entries;
    const std::string_view prefix = bytes_of(id);
    auto at = db_.iterate(Family::evidence);
    for (at.to(prefix); at.is_on_key() && at.key().starts_with(prefix); at.next()) {
      if (auto entry = parse_evidence_value(id, at.value())) entries.push_back(std::move(*entry));
    }
    return entries;
  }

 private:
  bool each_in(std::uint32_t file, const std::function<bool(Record&&)>& see) {
    const std::uint64_t end = db_.end_of_file(file);
    std::string part;
    std::uint64_t at = 0;
    for (std::size_t size = read_bytes_at_once; at < end;) {
      const std::size_t some = std::min<std::uint64_t>(size, end - at);
      if (!db_.read_version(std::uint64_t{file} << 32U | at, some, part)) break;
      std::size_t seen = 0;
      while (const auto version = version_in(std::string_view(part).substr(seen))) {
        if (!show(*version, see)) return false;
        seen += version->bytes.size();
      }
      if (seen == 0 && some == end - at) break;
      size = seen == 0 ? size * 2 : read_bytes_at_once;
      at += seen;
    }
    if (at < end) unread_.emplace(file, at);
    return true;
  }

  bool show(const Version& version, const std::function<bool(Record&&)>& see) {
    const auto id = to_id(version.id);
    auto record = id ? decode_record(*id, version.record) : std::unexpected(std::string_view());
    if (!record) return true;
    bool is_whole = add_request(*record);
    if (record->state == State::completed) {
      auto answer = decode_checked_answer(*id, version.answer, version.body);
      is_whole = is_whole && answer.has_value();
      if (answer) record->response = std::move(*answer);
    }
    if (!is_whole) lose_bytes(*record);
    return see(std::move(*record));
  }

  /// Of those that each_in() has not seen, also because their file is missing. A damaged table of
  /// ids says nothing of the versions in files that were read to their end.
  bool each_behind_damage(const std::function<bool(Record&&)>& see) {
    // Without the ids nobody knows what lay in files that cannot be read or are gone.
    bool is_whole = !db_.lacks_ids() || (unread_.empty() && why_files_lack(db_).empty());
    std::optional<RecordId> after;
    std::string bytes;
    do {
      const auto slice = db_.ids().slice(after, read_ids_at_once);
      is_whole = is_whole && (unread_.empty() || !slice.has_damage);
      for (const IdEntry& entry : slice.entries) {
        const auto file = static_cast<std::uint32_t>(entry.place >> 32U);
        const auto unread = unread_.find(file);
        const bool is_seen = unread == unread_.end() ? files_.contains(file)
                                                     : (entry.place & 0xffffffffU) < unread->second;
        if (is_seen) continue;
        const bool is_there = db_.read_version(entry.place, entry.size, bytes);
        const auto version = is_there ? version_in(bytes) : std::nullopt;
        if (!version || version->id != bytes_of(entry.id)) {
          is_whole = false;
        } else if (!show(*version, see)) {
          return false;
        }
      }
      after = slice.after;
    } while (after);
    return is_whole;
  }

  bool add_request(Record& record) {
    if (!record.stored_request) return true;
    const auto found = db_.find(Family::requests, bytes_of(record.id), bytes_);
    const auto request = found && *found ? without_checksum(record.id, bytes_) : std::nullopt;
    if (!request) return false;
    record.stored_request = std::string(*request);
    return true;
  }

  RunningSection& running_;
  Database& db_;
  std::set<std::uint32_t> files_;                  ///< Those that are there, at least in part.
  std::map<std::uint32_t, std::uint64_t> unread_;  ///< From where on a file cannot be read.
  std::string bytes_;
};

class Recovering {
 public:
  explicit Recovering(const RecoverOrder& order)
      : order_(order),
        copy_(name_beside(order.to, ".pages-")),
        next_(name_beside(order.to, ".part-")),
        lock_(order.from) {}

  std::expected<Recovered, StoreFileError> recover() {
    for (Done (Recovering::* const step)() :
         {&Recovering::check_place, &Recovering::look, &Recovering::begin, &Recovering::put_found,
          &Recovering::put_journals, &Recovering::settle, &Recovering::name}) {
      if (Done done = (this->*step)(); !done) return std::unexpected(std::move(done.error()));
    }
    return std::move(recovered_);
  }

 private:
  Done check_place() {
    if (auto why = why_not_recovered(order_)) return std::unexpected(std::move(*why));
    if (auto why = why_no_store(order_.from)) return std::unexpected(std::move(*why));
    if (const int error = lock_.take(); error != 0) return not_locked(order_.from, error);
    return {};
  }

  /// A copy whose log is healed. Of a log that was cut, as much is made up for as the index needs.
  Done look() {
    std::string why;
    for (const std::uint64_t more : cut_frames) {
      if (Done copied = more == 0 ? copy_all() : copy_logs(); !copied) return copied;
      // The first reason is about what the store has; later ones about what was made up for.
      auto healed = heal(more);
      if (!healed) {
        if (why.empty()) why = healed.error();
        continue;
      }
      auto looked = look_at_store(copy_, CutOffMove::shown, LookFor::recovery);
      if (!looked) {
        if (why.empty()) why = looked.error().why;
        continue;
      }
      look_ = std::move(*looked);
      if (healed->lost > 0 || more > 0) {
        recovered_.lacks_keys = true;
        recovered_.lacks_from = healed->newest;
      }
      return check_index();
    }
    for (auto at = why.find(copy_); at != why.npos; at = why.find(copy_)) {
      why.replace(at, copy_.size(), order_.from);
    }
    return std::unexpected(StoreFileError{
        Kind::refused, order_.from + ": cannot be read, also without what is damaged of its log: " +
                           why + ". Bring back a copy of it"});
  }

  Done copy_all() {
    const std::string parent = fs::path(copy_).parent_path().string();
    // The copy, and the store that is made of it.
    const std::uint64_t needed = 2 * bytes_below(order_.from);
    if (const auto full = embedded::why_too_full(parent, needed, 0, "the recovery")) {
      return recovery_failure(parent, *full);
    }
    return copy(order_.from, copy_);
  }

  /// Anew, as they were before they were healed; a look changes nothing else.
  Done copy_logs() {
    for (std::uint32_t shard = 0; shard < store_shards_max; ++shard) {
      const std::string folder = folder_of_shard(copy_, shard) + "/commits";
      std::error_code code;
      if (fs::remove_all(folder, code) == 0) continue;
      const std::string from = folder_of_shard(order_.from, shard) + "/commits";
      if (Done copied = copy(from, folder); !copied) return copied;
    }
    return {};
  }

  static Done copy(const std::string& from, const std::string& to) {
    std::error_code code;
    fs::copy(from, to, fs::copy_options::recursive, code);
    if (code) return recovery_failure(to, "cannot be written: " + code.message());
    return {};
  }

  std::expected<HealedLog, std::string> heal(std::uint64_t more) {
    HealedLog all;
    bool lacks_its_beginning = false;
    ran_.clear();
    for (std::uint32_t shard = 0; shard < store_shards_max; ++shard) {
      const std::string folder = folder_of_shard(copy_, shard);
      if (!has_store(folder)) continue;
      auto one = heal_log(folder, more);
      if (!one) return one;
      ran_[shard] = std::move(one->ran);
      all.lost += one->lost;
      // The first loss of any shard is the beginning, and of a log without a first frame any time.
      const bool counts = one->newest && (shard == 0 || one->lost > 0);
      if (counts && (!all.newest || *one->newest < *all.newest)) all.newest = one->newest;
      lacks_its_beginning |= one->lost > 0 && !one->newest;
    }
    if (lacks_its_beginning) all.newest.reset();
    return all;
  }

  /// No answer needs evidence and journals.
  Done check_index() {
    for (Look& shard : look_->shards) {
      const Families unread = unreadable_of(*shard.db, Families::all().without(derived_families));
      if (const Families lost = unread.without(recovered_without); !lost.is_empty()) {
        return std::unexpected(StoreFileError{
            Kind::refused, order_.from + ": its " + lost.text() + " cannot be read"});
      }
      if (unread.is_empty()) continue;
      recovered_.notes.push_back("its " + unread.text() +
                                 " cannot be read to the end: some are missing");
    }
    return {};
  }

  Done begin() {
    Meta meta(*look_->shards.front().db);
    auto identity = meta.identity();
    if (!identity || !*identity) {
      return std::unexpected(StoreFileError{
          Kind::refused, order_.from + ": what names its records cannot be read. Bring back a copy "
                                       "of it"});
    }
    identity_ = std::move(**identity);
    copied_->recorded = identity_.recorded;
    copied_->naming = identity_.naming;
    copied_->run = identity_.recorded.generation;
    return open(CopiedIdentity::Opening::begin);
  }

  Done open(CopiedIdentity::Opening opening) {
    store_.reset();
    copied_->opening = opening;
    LogOptions how;
    how.which.copied = copied_;
    how.shards_of_new = look_->layout.shards;
    auto opened = open_log(next_, {}, how);
    if (!opened) return recovery_failure(next_, opened.error().detail);
    store_ = std::move(*opened);
    return {};
  }

  Done put_found() {
    for (std::uint32_t shard = 0; shard < look_->shards.size(); ++shard) {
      ShardContent content(look_->shards[shard]);
      RecoveredRecords records(*store_, [&](const RecordId& id) { return content.evidence(id); });
      std::expected<void, StoreError> put;
      const auto see = [&](Record&& record) {
        put = records.put(std::move(record));
        return put.has_value();
      };
      const bool is_whole = content.each(see);
      for (const auto& [id, record] : ran_[shard]) {
        if (put) (void)content.show_running(record, see);
      }
      if (put) put = records.flush();
      if (!put) return recovery_failure(next_, put.error().detail);
      if (is_whole) continue;
      recovered_.lacks_keys = true;
      recovered_.lacks_from.reset();
      recovered_.notes.push_back("records of any time cannot be read: their keys are missing");
    }
    Fence floor = 0;
    for (Look& shard : look_->shards) {
      const auto noted = Meta(*shard.db).number(meta_fences);
      if (noted) floor = std::max(floor, noted->value_or(0));
    }
    const auto raised = ask_and_wait(
        *store_,
        PutRecord{.id = {}, .fence_floor = floor, .generation = store_->identity().generation});
    if (!raised) return recovery_failure(next_, raised.error().detail);
    return {};
  }

  /// Up to the first line of each that cannot be read.
  Done put_journals() {
    std::map<std::string, std::uint64_t> ends;
    std::set<std::string> cut;
    Done done;
    JournalLines::each(*look_->shards.front().db, [&](const std::string& name,
                                                      const JournalLine& line, std::uint64_t) {
      std::uint64_t& end = ends[name];
      if (!done || cut.contains(name)) return;
      if (line.is_damaged || line.seq != end + 1) {
        cut.insert(name);
        return;
      }
      const auto put = ask_and_wait(
          *store_, AppendLine{.journal = name, .behind = end, .line = line.bytes, .at = line.at});
      if (!put) done = recovery_failure(next_, put.error().detail);
      ++end;
    });
    for (const std::string& name : cut) {
      recovered_.notes.push_back(fmt::format(
          "the journal {} ends with line {}: the next one cannot be read", name, ends[name]));
    }
    return done;
  }

  Done settle() {
    if (Done ended = open(CopiedIdentity::Opening::end); !ended) return ended;
    store_.reset();
    if (Done kept = keep_identity(); !kept) return kept;
    const auto shards = look_->layout.shards;
    if (const auto copied_at = look_->shards.front().facts.copied_at) {
      add_what_a_copy_lacks(recovered_, from_bits(*copied_at));
    }
    look_.reset();
    auto store = open_log(next_, {}, {.as_recorded = true, .restored = true});
    if (!store) return recovery_failure(next_, store.error().detail);
    store->reset();
    if (Done noted = note_copied_at(shards); !noted) return noted;
    auto report = check_store(next_, part_of(order_.progress, 0, shards));
    if (!report) return std::unexpected(std::move(report.error()));
    recovered_.made = std::move(*report);
    return give_to_owner(next_, order_.to);
  }

  /// It is the same store, by its own clock.
  Done keep_identity() {
    auto mark = Meta(*look_->shards.front().db).clock_mark();
    for (std::uint32_t shard = 0; shard < look_->layout.shards; ++shard) {
      RunningSection running;
      auto db = Database::open({.path = folder_of_shard(next_, shard)}, running);
      if (!db) return recovery_failure(next_, db.error().detail);
      Meta meta(**db);
      auto made = meta.identity();
      if (!made || !*made) return recovery_failure(next_, "has no identity");
      (*made)->store_id = identity_.store_id;
      meta.put_identity(**made);
      if (mark && *mark) meta.put_clock_mark(**mark);
      (*db)->commit();
    }
    return {};
  }

  /// Else the restore that puts it in place could not say since when keys may be missing.
  Done note_copied_at(std::uint32_t shards) {
    const std::uint64_t moment = to_bits(copied_at_of(recovered_));
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      RunningSection running;
      auto db = Database::open({.path = folder_of_shard(next_, shard)}, running);
      if (!db) return recovery_failure(next_, db.error().detail);
      Meta(**db).put_number(meta_copied_at, moment);
      (*db)->commit();
      (*db)->note_clean_stop();
    }
    return {};
  }

  Done name() {
    std::error_code code;
    if (fs::exists(order_.to, code)) return std::unexpected(*why_not_recovered(order_));
    fs::rename(next_, order_.to, code);
    if (code) return recovery_failure(order_.to, "cannot be named: " + code.message());
    sync_folder(fs::path(order_.to).parent_path().string());
    return {};
  }

  const RecoverOrder& order_;
  std::string copy_;
  std::string next_;
  RemovedAtEnd copy_leftover_{copy_};
  RemovedAtEnd next_leftover_{next_};
  OwnerLock lock_;
  std::map<std::uint32_t, std::map<RecordId, Record>> ran_;  ///< HealedLog::ran of each shard.
  std::optional<StoreLook> look_;
  StoreIdentity identity_;
  std::shared_ptr<CopiedIdentity> copied_ = std::make_shared<CopiedIdentity>();
  std::unique_ptr<Store> store_;
  Recovered recovered_;
};

}  // namespace

std::expected<Recovered, StoreFileError> recover_store(const RecoverOrder& order) {
  return Recovering(order).recover();
}

}  // namespace idem::segments
