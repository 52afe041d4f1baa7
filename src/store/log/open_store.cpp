#include "store/log/open_store.hpp"

#include "core/naming/copied_identity.hpp"
#include "core/record/which_store.hpp"
#include "core/transitions/transitions.hpp"
#include "store/embedded/room_on_disk.hpp"
#include "store/embedded/running_rows.hpp"
#include "store/log/files.hpp"
#include "store/log/index_repair.hpp"
#include "store/log/making.hpp"
#include "store/log/meta.hpp"
#include "store/log/moving.hpp"
#include "store/log/running_section.hpp"
#include "store/log/shard_facts.hpp"
#include "store/log/shards.hpp"
#include "store/log/slots.hpp"

#include <idem/crash_point.hpp>
#include <idem/fingerprint.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace idem::segments {
namespace {

using Refusal = std::unexpected<StoreError>;

Refusal refused_as(std::string why) {
  return Refusal(StoreError{StoreError::Code::refused, std::move(why)});
}

Refusal refusal_at(const std::string& path, const std::string& why) {
  return refused_as(path + ": " + why);
}

struct Found {
  OpenedShard shard;
  ShardFacts facts;
  Families reindexed{};
};

std::expected<Found, StoreError> open_shard(const DatabaseSettings& how, const IndexRepair& repair,
                                            embedded::InCommon* in_common) {
  const std::string& path = how.path;
  auto running = std::make_unique<RunningSection>();
  auto opened = Database::open(how, *running);
  if (!opened) return Refusal(std::move(opened.error()));
  auto facts = read_facts(**opened, *running);
  if (!facts) return refused_as(std::move(facts.error()));
  Found found{.shard = {}, .facts = std::move(*facts), .reindexed = {}};
  found.shard.db = std::move(*opened);
  found.shard.noted_fence = found.facts.noted_fence;
  // Before the repair as well: lists that it makes without those records would lack them also when
  // the file is back.
  if (const auto why = why_files_lack(*found.shard.db); !why.empty()) return refused_as(why);
  const auto repaired = repair_index(*found.shard.db, *running, repair);
  if (!repaired) return refusal_at(path, "is damaged: " + repaired.error());
  found.reindexed = *repaired;
  if (const auto why = why_files_lack(*found.shard.db); !why.empty()) return refused_as(why);
  auto slots = make_slot_table(*found.shard.db, found.facts.counts, in_common);
  found.shard.table = embedded::keep_running_rows(std::move(running), std::move(slots));
  return found;
}

/// What the start decides about the store's identity; the error is a sentence.
struct Settled {
  StoreIdentity recorded;
  Identity identity;
  OpenedStore which;
};
std::expected<Settled, std::string> settle(std::optional<StoreIdentity> found,
                                           const IdentitySettings& settings,
                                           const LogOptions& options,
                                           const std::function<GenerationCensus()>& census) {
  const bool is_new = !found;
  if (auto why = why_not(options.which, is_new ? std::nullopt : std::optional(found->store_id))) {
    return std::unexpected(std::move(*why));
  }
  Settled settled;
  if (found) settled.recorded = std::move(*found);
  if (is_new) random_bytes(settled.recorded.store_id);
  settled.which = {.id = store_id_text(settled.recorded.store_id), .is_new = is_new};
  if (options.as_recorded && !is_new) return settled;
  auto recorded = is_new ? std::nullopt : std::optional(settled.recorded.recorded);
  auto identity = settle_identity(recorded, settings, census, options.which);
  if (!identity) return std::unexpected(std::move(identity.error()));
  settled.recorded.recorded = std::move(*recorded);
  settled.recorded.naming.generation = settled.recorded.recorded.generation;
  (void)settle_naming(options.which, settled.recorded.naming);
  settled.identity = std::move(*identity);
  return settled;
}

constexpr std::uint64_t room_of_a_start = 16UL << 20U;

class Opening {
 public:
  Opening(std::string path, const IdentitySettings& settings, const LogOptions& options)
      : path_(std::move(path)), settings_(settings), options_(options) {}

  std::expected<OpenedStoreParts, StoreError> open() {
    using Step = std::expected<void, StoreError> (Opening::*)();
    for (const Step step : {&Opening::open_what_is_there, &Opening::clear_leftovers,
                            &Opening::decide_identity, &Opening::see_whether_movable,
                            &Opening::make_what_lacks, &Opening::record, &Opening::move}) {
      if (auto done = (this->*step)(); !done) return Refusal(std::move(done.error()));
    }
    if (options_.opened) options_.opened(settled_.which);
    const bool is_snapshot = options_.which.copied && options_.which.copied->is_snapshot;
    if (was_open_ && !is_snapshot && options_.cut_off) {
      options_.cut_off(end_.newest_record, end_.stopped_at);
    }
    OpenedStoreParts parts{.in_common = in_common_,
                           .shards = {},
                           .identity = std::move(settled_.identity),
                           .naming = std::move(settled_.recorded.naming),
                           .clock = std::move(*clock_),
                           .highest_fence = highest_fence_,
                           .was_cut_off = was_open_ && !is_snapshot,
                           .is_restored = options_.restored};
    for (Found& found : found_) parts.shards.push_back(std::move(found.shard));
    return parts;
  }

 private:
  using Done = std::expected<void, StoreError>;

  std::string folder_of(std::uint32_t shard) const { return folder_of_shard(path_, shard); }
  DatabaseSettings settings_of(std::uint32_t shard) const {
    return {.path = folder_of(shard),
            .sizes = sizes_,
            .mark_each = options_.mark_each,
            .accepts_short_log = options_.accepts_short_log};
  }

  IndexRepair repair_of(std::uint32_t shard) const {
    return {.is_ordered = options_.reindex,
            .progress = part_of(options_.reindexing, shard, expected_shards())};
  }

  Done open_what_is_there() {
    sizes_ = sizes_of_one(options_.sizes, expected_shards());
    if (auto opened = add(0); !opened) return opened;
    found_.reserve(store_shards_max);  // The first one is looked at while others come.
    const ShardFacts& first = found_.front().facts;
    if (first.number) return refusal_at(path_, is_a_shard(*first.number));
    layout_ = first.layout;
    shards_ = layout_.shards;
    if (!options_.as_recorded && options_.shards != 0) {
      shards_ = options_.shards;
    } else if (!first.identity) {
      shards_ = options_.shards_of_new;
    }
    for (std::uint32_t shard = 1; shard < layout_.folders; ++shard) {
      if (!has_store(folder_of(shard))) return refusal_at(path_, lacks_shard(shard));
      if (auto opened = add(shard); !opened) return opened;
      std::string why = why_not_beside(first, shard, found_.back().facts, path_);
      if (!why.empty()) return refused_as(std::move(why));
    }
    return {};
  }

  /// Folders that the store does not count among its own: they were emptied, or a start that made
  /// them was cut off. One with records means that the first shard is not the one beside which they
  /// were written.
  Done clear_leftovers() {
    std::error_code code;
    if (!std::filesystem::exists(path_ + "/shards", code)) return {};
    for (std::uint32_t shard = 1; shard < store_shards_max; ++shard) {
      std::filesystem::remove_all(gone_name(shard), code);
      // What is no store there stays, unless a shard is made in its place (see Making).
      if (shard < layout_.folders || !has_store(folder_of(shard))) continue;
      {
        embedded::InCommon alone;
        auto opened = open_shard(settings_of(shard), {}, &alone);
        if (!opened) return Refusal(std::move(opened.error()));
        std::string why = why_not_a_leftover(opened->facts, shard, path_);
        if (!why.empty()) return refused_as(std::move(why));
      }
      if (auto dropped = drop(shard); !dropped) return dropped;
    }
    return {};
  }

  std::string gone_name(std::uint32_t shard) const { return folder_of(shard) + ".gone"; }

  /// Under another name first: what is deleted in part must not be taken for a shard.
  Done drop(std::uint32_t shard) {
    std::error_code code;
    std::filesystem::rename(folder_of(shard), gone_name(shard), code);
    if (!code) {
      sync_folder(path_ + "/shards");
      std::filesystem::remove_all(gone_name(shard), code);
    }
    if (code) {
      const std::string folder = folder_of(shard);
      return refusal_at(folder, "cannot be removed: " + words_on(code.value(), folder, path_));
    }
    return {};
  }

  /// No fewer than the store turns out to have.
  std::uint32_t expected_shards() const {
    std::uint32_t folders = 1;
    while (folders < store_shards_max && has_store(folder_of(folders))) ++folders;
    return std::max({folders, options_.shards, has_store(path_) ? 1U : options_.shards_of_new});
  }

  Done add(std::uint32_t shard) {
    auto opened = open_shard(settings_of(shard), repair_of(shard), in_common_.get());
    if (!opened) return Refusal(std::move(opened.error()));
    end_.join(opened->shard.db->found_end());
    if (options_.reindexed && !opened->reindexed.is_empty()) {
      options_.reindexed(opened->reindexed.text());
    }
    const ShardFacts& facts = opened->facts;
    was_open_ = was_open_ || facts.was_open;
    highest_fence_ = std::max(highest_fence_, facts.noted_fence);
    // All are of one clock, whose latest mark counts.
    if (facts.mark && (!mark_ || mark_->store < facts.mark->store)) mark_ = facts.mark;
    found_.push_back(std::move(*opened));
    return {};
  }

  Done decide_identity() {
    clock_.emplace(options_.host ? *options_.host : this_host(), mark_);
    const auto census = [this] { return take_census(); };
    auto settled = settle(found_.front().facts.identity, settings_, options_, census);
    if (!settled) return refusal_at(path_, settled.error());
    settled_ = std::move(*settled);
    settled_.which.place = path_;
    settled_.recorded.naming.by_operation = settings_.key_scope == "operation";
    return {};
  }

  GenerationCensus take_census() {
    GenerationCensus census;
    for (const Found& found : found_) {
      found.shard.table->visit([&](const Record* record) {
        if (record != nullptr && !transitions::is_live(*record, clock_->now())) return true;
        census.empty = false;
        if (record == nullptr) {
          census.complete = false;
        } else {
          census.generations.insert(record->generation);
        }
        return true;
      });
    }
    return census;
  }

  Done see_whether_movable() {
    // A move that was begun looks at what it moves.
    if (!is_to_move() || layout_.is_moving) return {};
    return with_shards([this](std::span<OpenedShard> shards) -> Done {
      const auto bytes = bytes_to_move(shards, shards_);
      if (!bytes) return refusal_at(path_, bytes.error());
      if (*bytes == 0) return {};
      // What a record leaves behind gets free later, and so do files of the logs.
      const std::uint64_t logs = std::max<std::uint64_t>(shards_, shards.size()) *
                                 (3 * sizes_.segment_bytes + room_of_a_start);
      const auto why =
          embedded::why_too_full(path_, *bytes + logs, 0, "moving its records to shards");
      if (why) return refusal_at(path_, *why);
      return {};
    });
  }

  Done make_what_lacks() {
    const std::string parent = path_ + "/shards";
    if (shards_ <= layout_.folders) return {};
    if (::mkdir(parent.c_str(), 0700) != 0 && errno != EEXIST) {
      return refusal_at(parent, "cannot be created: " + words_on(errno, parent, path_));
    }
    sync_folder(path_);
    for (std::uint32_t shard = layout_.folders; shard < shards_; ++shard) {
      if (auto added = add(shard); !added) return added;
    }
    return {};
  }

  // The first shard last: without its layout the new ones do not count.
  Done record() {
    if (shards_ > 1) {
      const auto allowed = found_.front().shard.db->allow_shards();
      if (!allowed) return refusal_at(path_, allowed.error());
    }
    if (options_.restored) highest_fence_ += transitions::restored_fence_gap;
    StartMark mark = found_.front().facts.start;
    // Of a start that was cut off in between some may have the next one: it stays the next one.
    if (mark.next == mark.present) mark.next = StartMark::random();
    if (found_.size() > 1) {  // The others get it before the first one has it as its present one.
      Meta meta(*found_.front().shard.db);
      write_start_mark(meta, mark);
      found_.front().shard.db->commit();
    }
    mark.present = mark.next;
    for (std::uint32_t shard = static_cast<std::uint32_t>(found_.size()); shard-- > 0;) {
      Found& found = found_[shard];
      Database& db = *found.shard.db;
      Meta meta(db);
      meta.put_identity(settled_.recorded);
      meta.put_clock_mark(clock_->mark());
      meta.put_number(meta_open, 1);
      // The shard that granted the highest may be one that goes.
      if (options_.restored || is_to_move()) {
        meta.put_number(meta_fences, highest_fence_);
        found.shard.noted_fence = highest_fence_;
      }
      const auto& copied_at = found_.front().facts.copied_at;
      // Of several shards either all have it or none, also after a kill: only a restore takes it.
      if (options_.restored || found_.size() == 1) {
        db.remove(Family::meta, meta_copied_at);
      } else if (copied_at) {
        meta.put_number(meta_copied_at, *copied_at);
      }
      if (found_.size() > 1) write_start_mark(meta, mark);
      if (shard > 0) {
        meta.put_number(meta_shard, shard);
      } else if (is_to_move()) {
        layout_.shards = shards_;
        layout_.folders = std::max(layout_.folders, shards_);
        layout_.is_moving = true;
        write_layout(meta, layout_);
      }
      db.commit();
    }
    in_common_->last_fence = highest_fence_;
    return {};
  }

  bool is_to_move() const { return layout_.is_moving || layout_.shards != shards_; }

  Done move() {
    if (!layout_.is_moving) return {};
    crash_point(CrashPoint::shards_moving);
    const Done moved = with_shards([this](std::span<OpenedShard> shards) -> Done {
      const auto progress = [this](std::uint64_t records) {
        if (options_.moving) options_.moving(shards_, records);
      };
      const auto done = move_records(shards, shards_, progress);
      if (!done) return refusal_at(path_, done.error());
      for (OpenedShard& goes : shards.subspan(shards_)) {
        if (!goes.is_empty()) return refusal_at(path_, "not all of its records could be moved");
      }
      crash_point(CrashPoint::shards_moved);
      Meta meta(*shards.front().db);
      write_layout(meta, {.shards = shards_, .folders = shards_, .is_moving = false});
      shards.front().db->commit();
      return {};
    });
    if (!moved) return moved;
    while (found_.size() > shards_) {
      found_.back().shard.table.reset();
      found_.pop_back();
      (void)drop(static_cast<std::uint32_t>(found_.size()));  // Or the next start does.
    }
    return {};
  }

  template <class Work>
  Done with_shards(Work work) {
    std::vector<OpenedShard> shards;
    for (Found& found : found_) shards.push_back(std::move(found.shard));
    const Done done = work(shards);
    for (std::size_t i = 0; i < shards.size(); ++i) found_[i].shard = std::move(shards[i]);
    return done;
  }

  std::string path_;
  const IdentitySettings& settings_;
  const LogOptions& options_;
  LogSizes sizes_;
  std::shared_ptr<embedded::InCommon> in_common_ = std::make_shared<embedded::InCommon>();
  Layout layout_;
  std::uint32_t shards_ = 1;
  std::vector<Found> found_;
  std::optional<ClockMark> mark_;
  std::optional<StoreClock> clock_;
  Fence highest_fence_ = 0;
  bool was_open_ = false;
  FoundEnd end_;  ///< Of all shards.
  Settled settled_;
};

}  // namespace

bool OpenedShard::is_empty() {
  bool is_empty = true;
  table->visit([&](const Record*) { return is_empty = false; });
  return is_empty && has_no_lines(*db);
}

std::expected<OpenedStoreParts, StoreError> open_store(const std::string& path,
                                                       const IdentitySettings& settings,
                                                       const LogOptions& options) {
  if (path.empty()) return refusal_at("embedded:", "the store's path is empty");
  std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  if (const auto why = why_dangling(absolute)) return refusal_at(absolute, *why);
  if (auto why = why_no_access(absolute, FileUse::writing)) {
    return Refusal(StoreError{StoreError::Code::refused, std::move(*why)});
  }
  if (const auto why = why_not(options.which, std::nullopt); why && !has_store(absolute)) {
    return refusal_at(absolute, *why);
  }
  return Opening(std::move(absolute), settings, options).open();
}

}  // namespace idem::segments
