#include "store/log/moving.hpp"

#include "core/transitions/quota.hpp"
#include "store/embedded/shard_of.hpp"
#include "store/log/index_repair.hpp"
#include "store/log/keys.hpp"
#include "store/record_rows.hpp"

#include <idem/crash_point.hpp>

#include <limits>
#include <set>

namespace idem::segments {
namespace {

using Moved = std::expected<void, std::string>;
using Parts = RecordTable::Parts;
using Progress = std::function<void(std::uint64_t moved)>;

constexpr std::size_t moved_ids_at_once = 4'096;
/// Of records in one commit of each shard, about.
constexpr std::size_t moved_bytes_at_once = 4UL << 20U;
constexpr std::size_t records_at_once = 1'024;
/// Of one without answer and request, with its lines in lists.
constexpr std::size_t bytes_of_record = 500;
constexpr std::uint64_t moved_between_progress = 100'000;

std::unexpected<std::string> unmovable(std::string_view why) {
  return std::unexpected(
      std::string(why) +
      ": records that cannot be read cannot be moved, so that the number of shards has to stay as "
      "it is (`idem store check` names them; once a move has begun, a start with the number from "
      "before goes on where only such records stay)");
}

void commit(OpenedShard& shard) {
  shard.table->flush();
  shard.db->commit();
}

class Moving {
 public:
  Moving(std::span<OpenedShard> shards, std::uint32_t count, Progress progress)
      : shards_(shards), count_(count), progress_(std::move(progress)) {}

  Moved move(bool only_look) {
    for (std::uint32_t from = 0; from < shards_.size(); ++from) {
      for (const auto step : {&Moving::records, &Moving::evidence}) {
        if (Moved done = (this->*step)(from, only_look); !done) return done;
      }
    }
    if (progress_ && moved_ > 0) progress_(moved_);
    return {};
  }
  /// Of the records that leave their shards.
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  bool stays(const RecordId& id, std::uint32_t at) const {
    return embedded::shard_of(id, count_) == at;
  }
  OpenedShard& home_of(const RecordId& id) { return shards_[embedded::shard_of(id, count_)]; }

  // ---- records ----

  Moved records(std::uint32_t from, bool only_look) {
    OpenedShard& shard = shards_[from];
    if (only_look) {
      const Families damage = unreadable_of(*shard.db, Families::all());
      if (!damage.is_empty()) return unmovable("its " + damage.text() + " cannot be read");
    }
    std::vector<RecordId> leaving;
    bool is_readable = true;
    shard.table->visit([&](const Record* record) {  // The running ones come first.
      is_readable = record != nullptr;
      if (!is_readable || record->state != State::in_progress) return false;
      if (!stays(record->id, from)) leaving.push_back(record->id);
      return true;
    });
    if (!is_readable) return unmovable("a record is damaged");
    if (Moved done = these(from, leaving, only_look); !done) return done;
    std::optional<RecordId> after;
    do {
      const auto slice = shard.db->ids().slice(after, moved_ids_at_once);
      if (slice.has_damage) return unmovable("a page of the table of ids is damaged");
      leaving.clear();
      for (const IdEntry& entry : slice.entries) {
        if (!stays(entry.id, from)) leaving.push_back(entry.id);
      }
      if (Moved done = these(from, leaving, only_look); !done) return done;
      after = slice.after;
    } while (after);
    return {};
  }

  Moved these(std::uint32_t from, const std::vector<RecordId>& ids, bool only_look) {
    OpenedShard& shard = shards_[from];
    std::vector<Row> moving;
    std::size_t bytes = 0;
    for (const RecordId& id : ids) {
      auto row = shard.table->load(id, Parts::all, {});
      if (!row) return unmovable(row.error().detail);
      if (!*row) continue;
      const std::size_t size = size_of((*row)->record);
      bytes_ += size;
      if (only_look) continue;
      bytes += size;
      moving.push_back(std::move(**row));
      if (bytes < moved_bytes_at_once && moving.size() < records_at_once) continue;
      if (Moved done = move_rows(shard, moving); !done) return done;
      bytes = 0;
    }
    return move_rows(shard, moving);
  }

  static std::size_t size_of(const Record& record) {
    std::size_t bytes = bytes_of_record;
    if (record.response) bytes += record.response->body.size();
    if (record.stored_request) bytes += record.stored_request->size();
    return bytes;
  }

  // First they are durable in their shards.
  Moved move_rows(OpenedShard& from, std::vector<Row>& rows) {
    if (rows.empty()) return {};
    std::set<OpenedShard*> changed;
    std::vector<std::pair<RecordId, std::int64_t>> gone;
    for (Row& row : rows) {
      const RecordId id = row.record.id;
      OpenedShard& home = home_of(id);
      const auto there = home.table->load(id, Parts::all, {});  // It may stay as the only one.
      if (!there) return unmovable(there.error().detail);
      gone.emplace_back(id, row.place);
      const UsageChange usage = usage_of(row.record);
      from.table->add_usage(row.record.scope, -usage);
      if (*there) continue;  // A start that was cut off has put it there.
      home.table->add_usage(row.record.scope, usage);
      home.table->insert(std::move(row.record));
      changed.insert(&home);
    }
    for (OpenedShard* const home : changed) commit(*home);
    crash_point(CrashPoint::shard_copied);
    for (const auto& [id, place] : gone) from.table->erase(id, place);
    commit(from);
    note(rows.size());
    rows.clear();
    return {};
  }

  void note(std::size_t records) {
    const std::uint64_t before = moved_;
    moved_ += records;
    if (progress_ && moved_ / moved_between_progress != before / moved_between_progress) {
      progress_(moved_);
    }
  }

  // ---- evidence: lines outlive their records ----

  Moved evidence(std::uint32_t from, bool only_look) {
    OpenedShard& shard = shards_[from];
    std::string next;
    for (;;) {
      const auto ids = ids_with_evidence(*shard.db, next);
      if (shard.db->has_failed_step()) return unmovable("evidence cannot be read");
      std::vector<RecordId> leaving;
      for (const RecordId& id : ids) {
        if (!stays(id, from)) leaving.push_back(id);
      }
      if (Moved done = lines_of(shard, leaving, only_look); !done) return done;
      if (ids.empty()) return {};
    }
  }

  /// Some ids from `next` on, which goes on behind them.
  static std::vector<RecordId> ids_with_evidence(Database& db, std::string& next) {
    std::vector<RecordId> ids;
    auto at = db.iterate(Family::evidence);
    at.to(next);
    while (at.is_on_key() && ids.size() < records_at_once) {
      const auto id = to_id(at.key().substr(0, sizeof(RecordId::bytes)));
      if (id) ids.push_back(*id);
      next = std::string(at.key().substr(0, sizeof(RecordId::bytes)));
      append_ordered(next, std::numeric_limits<std::uint64_t>::max());
      at.to(next);
    }
    db.check(at, Family::evidence);
    return ids;
  }

  Moved lines_of(OpenedShard& from, const std::vector<RecordId>& ids, bool only_look) {
    std::set<OpenedShard*> changed;
    for (const RecordId& id : ids) {
      const auto lines = from.table->evidence(id);
      if (!lines) return unmovable(lines.error().detail);
      if (only_look) continue;
      OpenedShard& home = home_of(id);
      const auto there = home.table->evidence(id);
      if (!there) return unmovable(there.error().detail);
      if (!there->empty()) continue;  // Of a start that was cut off: all of them.
      for (const EvidenceEntry& line : *lines) home.table->append_evidence(id, line);
      changed.insert(&home);
    }
    if (only_look || ids.empty()) return {};
    for (OpenedShard* const home : changed) commit(*home);
    crash_point(CrashPoint::shard_copied);
    for (const RecordId& id : ids) forget_lines(*from.db, id);
    commit(from);
    return {};
  }

  static void forget_lines(Database& db, const RecordId& id) {
    const std::string prefix(bytes_of(id));
    std::vector<std::string> keys;
    auto at = db.iterate(Family::evidence);
    for (at.to(prefix); at.is_on_key() && at.key().starts_with(prefix); at.next()) {
      keys.emplace_back(at.key());
    }
    if (!db.check(at, Family::evidence)) return;
    for (const std::string& key : keys) db.erase(Family::evidence, key);
  }

  std::span<OpenedShard> shards_;
  std::uint32_t count_;
  Progress progress_;
  std::uint64_t moved_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::expected<std::uint64_t, std::string> bytes_to_move(std::span<OpenedShard> shards,
                                                        std::uint32_t count) {
  Moving moving(shards, count, {});
  if (auto looked = moving.move(true); !looked) return std::unexpected(std::move(looked.error()));
  return moving.bytes();
}

std::expected<void, std::string> move_records(std::span<OpenedShard> shards, std::uint32_t count,
                                              const Progress& progress) {
  return Moving(shards, count, progress).move(false);
}

}  // namespace idem::segments
