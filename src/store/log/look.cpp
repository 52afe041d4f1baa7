#include "store/log/look.hpp"

#include "core/record/store_clock.hpp"
#include "core/record/stored_record_codec.hpp"
#include "core/record/which_store.hpp"
#include "core/transitions/transitions.hpp"
#include "store/file_access.hpp"
#include "store/folder.hpp"
#include "store/log/compaction.hpp"
#include "store/log/index_repair.hpp"
#include "store/log/making.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

namespace idem::segments {
namespace {

namespace fs = std::filesystem;

using Kind = StoreFileError::Kind;

/// What its process renames, deletes or writes at that moment looks like damage, and another look
/// does not meet it.
constexpr int looks_max = 200;
constexpr std::chrono::milliseconds between_looks{5};
constexpr std::size_t looked_ids_at_once = 4'096;

/// By RocksDB's lock of a database that has one process. Not in that process itself: the kernel
/// gives up its lock when any descriptor of the file is closed.
bool has_process(const std::string& path) {
  const int file = ::open((path + "/index/LOCK").c_str(), O_RDONLY | O_CLOEXEC);
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  const bool is_held =
      file >= 0 && ::fcntl(file, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
  if (file >= 0) ::close(file);
  return is_held;
}

/// Of the records that are live.
class Census {
 public:
  explicit Census(StoreTime now) : now_(now) {}

  GenerationCensus take(StoreLook& store) {
    for (Look& look : store.shards) add_all(look);
    return std::move(census_);
  }

 private:
  void add_all(Look& look) {
    std::string bytes;
    std::optional<RecordId> after;
    do {
      const auto slice = look.db->ids().slice(after, looked_ids_at_once);
      if (slice.has_damage) add(nullptr);
      for (const IdEntry& entry : slice.entries) {
        const bool is_there = look.db->read_version(entry.place, entry.size, bytes);
        const auto version = is_there ? version_in(bytes) : std::nullopt;
        add(entry.id, version ? version->record : std::string_view());
      }
      after = slice.after;
    } while (after);
    look.running->visit(
        [&](const embedded::RunningCells::Found& found) { add(found.id, found.record); });
  }

  void add(const RecordId& id, std::string_view bytes) {
    const auto record = decode_record(id, bytes);
    add(record ? &*record : nullptr);
  }
  void add(const Record* record) {
    if (record != nullptr && !transitions::is_live(*record, now_)) return;
    census_.empty = false;
    if (record == nullptr) {
      census_.complete = false;
    } else {
      census_.generations.insert(record->generation);
    }
  }

  StoreTime now_;
  GenerationCensus census_;
};

/// Empty: a start with these settings takes it.
std::string contradiction(StoreLook& look, const IdentitySettings& settings) {
  const auto& found = look.shards.front().facts.identity;
  if (!found) return {};
  std::optional recorded = found->recorded;
  const auto census = [&] { return Census(wall_time()).take(look); };
  const auto settled = settle_identity(recorded, settings, census, {.make = false, .look = true});
  return settled ? std::string() : settled.error();
}

}  // namespace

std::optional<StoreFileError> why_no_store(const std::string& path) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) {
    const int error = errno;
    if (const auto why = why_dangling(path))
      return StoreFileError{Kind::failed, path + ": " + *why};
    const bool is_missing = error == ENOENT || error == ENOTDIR;
    return StoreFileError{is_missing ? Kind::not_found : Kind::failed,
                          is_missing ? path + ": there is no such directory"
                                     : file_failure(path, "cannot be read", error)};
  }
  if (!S_ISDIR(found.st_mode)) {
    return StoreFileError{Kind::refused, path + ": is a file, and the store is a directory"};
  }
  const std::string format = path + "/commits/format";
  if (::stat(format.c_str(), &found) != 0 && errno != ENOENT) {
    return StoreFileError{Kind::failed, part_failure(path, format, "cannot be read", errno)};
  }
  auto has = has_store_or_room(path);
  if (!has) return StoreFileError{Kind::refused, std::move(has.error())};
  if (*has) return std::nullopt;
  return StoreFileError{
      Kind::empty,
      path + (is_being_made(path) ? ": its making is under way or was cut off, and no key was "
                                    "confirmed there"
                                  : ": is no store of Idem; write the path of a store or of a "
                                    "backup")};
}

namespace {

struct NotSeen {
  std::string why;
  bool may_pass = true;  ///< Its process may have changed at that moment what was read.
};

/// As a start judges it, in the same order.
std::expected<Look, NotSeen> try_to_look(const std::string& path, bool is_alone, LookFor purpose) {
  const bool is_recovery = purpose == LookFor::recovery;
  Look look{.running = std::make_unique<RunningSection>(), .db = {}, .facts = {}};
  auto db = Database::look({.path = path, .is_alone = is_alone, .is_recovery = is_recovery},
                           *look.running);
  if (!db) return std::unexpected(NotSeen{std::move(db.error().detail)});
  auto facts = read_facts(**db, *look.running);
  if (!facts) return std::unexpected(NotSeen{std::move(facts.error())});
  look.db = std::move(*db);
  look.facts = std::move(*facts);
  if (is_recovery) return look;
  const auto anew = judge_index(*look.db);
  if (!anew) return std::unexpected(NotSeen{path + ": is damaged: " + anew.error(), false});
  if (anew->has(Family::segments)) return look;
  std::string lacks = why_files_lack(*look.db);
  if (lacks.empty()) return look;
  return std::unexpected(NotSeen{std::move(lacks)});
}

std::expected<Look, StoreFileError> look_at_shard(const std::string& path, LookFor purpose) {
  if (auto why = why_no_store(path)) return std::unexpected(std::move(*why));
  for (int i = 1;; ++i) {
    const bool had_process = has_process(path);
    auto look = try_to_look(path, !had_process, purpose);
    if (look) return std::move(*look);
    const bool is_over = !had_process && !has_process(path);
    if (is_over || !look.error().may_pass) {
      return std::unexpected(StoreFileError{Kind::refused, std::move(look.error().why)});
    }
    if (i == looks_max) {
      return std::unexpected(StoreFileError{
          Kind::failed,
          "its process changed what was read, each time: run this again at a quieter "
          "time. The last time: " +
              look.error().why});
    }
    std::this_thread::sleep_for(between_looks);
  }
}

StoreFileError refusal(const std::string& path, const std::string& why) {
  return {Kind::refused, path + ": " + why};
}

std::expected<Layout, StoreFileError> layout_of(const std::string& path, const ShardFacts& first,
                                                CutOffMove cut_off) {
  if (first.number) return std::unexpected(refusal(path, is_a_shard(*first.number)));
  if (!first.layout.is_moving) return first.layout;
  if (has_process(path)) {
    return std::unexpected(refusal(
        path, "a start is moving its records to other shards: run this again when it is over"));
  }
  if (cut_off == CutOffMove::shown) return first.layout;
  return std::unexpected(refusal(
      path, "a start that was moving its records to other shards was cut off: start it first"));
}

/// Of a process that has it open, or a start that was cut off, a folder may be on its way.
std::expected<void, StoreFileError> look_at_leftovers(const std::string& path, const Layout& layout,
                                                      std::size_t folders) {
  for (auto shard = static_cast<std::uint32_t>(folders); shard < store_shards_max; ++shard) {
    const std::string folder = folder_of_shard(path, shard);
    if (layout.is_moving || !has_store(folder) || has_process(path)) continue;
    const auto look = look_at_shard(folder, LookFor::start);
    if (!look) return std::unexpected(look.error());
    const std::string why = why_not_a_leftover(look->facts, shard, path);
    if (!why.empty()) return std::unexpected(StoreFileError{Kind::refused, why});
  }
  return {};
}

}  // namespace

std::expected<StoreLook, StoreFileError> look_at_store(const std::string& path, CutOffMove cut_off,
                                                       LookFor purpose) {
  if (auto why = why_no_access(path, FileUse::reading)) {
    return std::unexpected(StoreFileError{Kind::failed, std::move(*why)});
  }
  StoreLook look{.layout = {}, .shards = {}, .taken_at = wall_time()};
  auto first = look_at_shard(path, purpose);
  if (!first) return std::unexpected(std::move(first.error()));
  const auto layout = layout_of(path, first->facts, cut_off);
  if (!layout) return std::unexpected(layout.error());
  look.layout = *layout;
  look.shards.push_back(std::move(*first));
  for (std::uint32_t shard = 1; shard < layout->folders; ++shard) {
    const std::string folder = folder_of_shard(path, shard);
    if (!has_store(folder)) return std::unexpected(refusal(path, lacks_shard(shard)));
    auto other = look_at_shard(folder, purpose);
    if (!other) return std::unexpected(std::move(other.error()));
    look.shards.push_back(std::move(*other));
  }
  if (purpose == LookFor::start) {
    const auto left = look_at_leftovers(path, *layout, look.shards.size());
    if (!left) return std::unexpected(left.error());
  }
  if (layout->folders == 1) return look;
  first = look_at_shard(path, purpose);
  if (!first) return std::unexpected(std::move(first.error()));
  const auto again = layout_of(path, first->facts, cut_off);
  if (!again) return std::unexpected(again.error());
  if (*again != *layout) {
    return std::unexpected(refusal(path, "the number of its shards has changed: run this again"));
  }
  look.shards.front() = std::move(*first);
  for (std::uint32_t shard = 1; shard < look.shards.size(); ++shard) {
    const std::string why =
        why_not_beside(look.shards.front().facts, shard, look.shards[shard].facts, path);
    if (why.empty()) continue;
    return std::unexpected(
        StoreFileError{Kind::refused, why + ". If it was started meanwhile, run this again"});
  }
  return look;
}

std::expected<StoreFileReport, StoreFileError> identify_store(const std::string& path,
                                                              const IdentitySettings& settings,
                                                              LookDepth depth) {
  if (auto why = why_no_access(path, use_of_start(path))) {
    return std::unexpected(StoreFileError{Kind::failed, std::move(*why)});
  }
  auto look = look_at_store(path);
  if (!look) return std::unexpected(std::move(look.error()));
  StoreFileReport report;
  report.contradiction = contradiction(*look, settings);
  const LogSizes sizes = sizes_of_one({}, look->layout.shards);
  for (const Look& shard : look->shards) {
    const bool may_be_started = depth == LookDepth::whole && !has_process(path);
    if (!report.contradiction.empty() || !may_be_started) break;
    report.contradiction =
        why_no_room_to_start(shard.db->path(), sizes, *shard.running).value_or("");
  }
  const auto& identity = look->shards.front().facts.identity;
  if (identity) report.store_id = store_id_text(identity->store_id);
  report.bytes = bytes_below(path);
  return report;
}

std::uint64_t bytes_below(const std::string& path) {
  std::uint64_t bytes = 0;
  std::error_code code;
  for (const std::string& file : paths_below(path, code)) {
    std::error_code gone;
    const auto size = fs::is_regular_file(file, gone) ? fs::file_size(file, gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

}  // namespace idem::segments
