#include "store/log/index_repair.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/record/stored_record_codec.hpp"
#include "core/transitions/quota.hpp"
#include "core/transitions/transitions.hpp"
#include "store/log/compaction.hpp"
#include "store/log/due_lists.hpp"
#include "store/log/keys.hpp"
#include "store/log/meta.hpp"
#include "store/log/usage_values.hpp"
#include "store/log/work_lists.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace idem::segments {
namespace {

/// The lists of what is due soon: a start reads so many of them.
constexpr std::size_t due_lists_read = 256;
/// Ids whose versions are read together, in the order of their places.
constexpr std::size_t ids_reindexed_at_once = 65'536;
/// Of records in one commit.
constexpr std::size_t reindexed_in_a_commit = 8'192;

bool can_read(Database& db, Family family, std::size_t most) {
  auto at = db.iterate(family);
  std::size_t seen = 0;
  for (at.to_first(); at.is_on_key() && seen < most; at.next()) {
    if (family == Family::due && !DueLists::each(at.key(), at.value(), [](const auto&) {})) {
      return false;
    }
    ++seen;
  }
  return at.status_text().empty();
}

/// Makes families anew.
class Reindexing {
 public:
  Reindexing(Database& db, RunningSection& running, Families families, const IndexRepair& how)
      : db_(db), running_(running), families_(families), how_(how), due_(db), work_(db) {}

  void run(std::uint64_t records) {
    all_ = records;
    std::optional<RecordId> after;
    do {
      auto slice = db_.ids().slice(after, ids_reindexed_at_once);
      has_damage_ = has_damage_ || slice.has_damage;
      std::ranges::sort(slice.entries, {}, &IdEntry::place);
      for (const IdEntry& entry : slice.entries) add(entry);
      after = slice.after;
    } while (after);
    running_.visit([&](const embedded::RunningCells::Found& found) {
      const auto record = decode_record(found.id, found.record);
      if (record) use(*record);
    });
    write_usage();
    write_segments();
    commit();
    if (how_.progress) how_.progress(all_, all_);
  }

 private:
  void add(const IdEntry& entry) {
    present_[VersionFiles::file_of(entry.place)] += entry.size;
    if (++done_ % reindexed_in_a_commit == 0) {
      commit();
      if (how_.progress) how_.progress(std::min(done_, all_), all_);
    }
    if (!needs_records()) return;
    // One that cannot be read is refused wherever it is asked for, and nothing ends it.
    if (!db_.read_version(entry.place, entry.size, bytes_)) return;
    const auto version = version_in(bytes_);
    if (!version || version->id != bytes_of(entry.id)) return;
    const auto record = decode_record(entry.id, version->record);
    if (!record) return;
    use(*record);
    const auto due = transitions::due_at(*record);
    if (families_.has(Family::due) && due && DueLists::has(record->state)) {
      due_.add(*due, {entry.id, static_cast<std::int64_t>(entry.place)});
    }
    if (families_.has(Family::work)) work_.add(*record);
  }

  bool needs_records() const {
    return families_.has(Family::due) || families_.has(Family::work) ||
           families_.has(Family::usage);
  }

  void use(const Record& record) {
    const UsageChange change = usage_of(record);
    UsageChange& sum = usage_[record.scope];
    sum.active += change.active;
    sum.bytes += change.bytes;
  }

  void write_usage() {
    if (!families_.has(Family::usage)) return;
    for (const auto& [scope, usage] : usage_) {
      if (usage.active == 0 && usage.bytes == 0) continue;
      db_.append(Family::usage, scope,
                 UsageValues::to_value(static_cast<std::uint64_t>(usage.active),
                                       static_cast<std::uint64_t>(usage.bytes)));
    }
  }

  // A file without present versions is deleted, so none is noted where ids are missing.
  void write_segments() {
    if (!families_.has(Family::segments) || has_damage_) return;
    for (const std::uint32_t file : db_.files_of_versions()) present_.try_emplace(file, 0);
    for (const auto& [file, bytes] : present_) {
      db_.append(Family::segments, ordered_key(std::uint64_t{file}), ordered_key(bytes));
    }
  }

  void commit() {
    due_.flush([](const DueLists::Entry&) { return true; });
    db_.commit();
  }

  Database& db_;
  RunningSection& running_;
  Families families_;
  const IndexRepair& how_;
  DueLists due_;
  WorkLists work_;
  std::map<std::string, UsageChange> usage_;
  std::map<std::uint32_t, std::uint64_t> present_;
  bool has_damage_ = false;
  std::uint64_t done_ = 0;
  std::uint64_t all_ = 0;
  std::string bytes_;
};

}  // namespace

Families unreadable_of(Database& db, const Families& families) {
  Families unreadable;
  for (std::size_t i = 0; i < family_count; ++i) {
    const auto family = static_cast<Family>(i);
    if (!families.has(family)) continue;
    if (!can_read(db, family, std::numeric_limits<std::size_t>::max())) unreadable.add(family);
  }
  return unreadable;
}

std::string not_derived(const Families& damaged, const std::string& file) {
  const bool can_recover = damaged.without(recovered_without).is_empty();
  return "its " + damaged.text() + " cannot be read" + (file.empty() ? "" : " (" + file + ")") +
         ", and what was there is nowhere else. Nothing was changed: restore a backup (idem store "
         "restore)" +
         (can_recover ? ", or keep what can be read (idem store recover)" : "");
}

namespace {

std::expected<std::uint64_t, std::string> records_in(Database& db) {
  const auto counts = read_counts(db);
  if (!counts) return std::unexpected(counts.error());
  return std::accumulate(counts->by_state.begin(), counts->by_state.end(), std::uint64_t{0});
}

/// Those that a start reads, and those that a process has found damaged.
std::expected<Families, std::string> damaged_of(Database& db) {
  const auto noted = db.noted_damage();
  if (!noted) return std::unexpected(noted.error());
  Families to_read = noted->without(derived_families);
  for (const Family one : {Family::meta, Family::segments, Family::work, Family::usage}) {
    to_read.add(one);
  }
  Families damaged = unreadable_of(db, to_read);
  if (!can_read(db, Family::due, due_lists_read)) damaged.add(Family::due);
  return Families(damaged.bits() | noted->both(derived_families).bits() | db.unopened().bits());
}

std::expected<Families, std::string> judge(Database& db, bool is_ordered) {
  const auto damaged = damaged_of(db);
  if (!damaged) return damaged;
  if (const Families lost = damaged->without(derived_families); !lost.is_empty()) {
    return std::unexpected(not_derived(lost, {}));
  }
  if (is_ordered) return derived_families;
  if (damaged->is_empty()) return damaged;
  const auto records = records_in(db);
  if (!records) return std::unexpected(records.error());
  if (*records <= records_reindexed_by_a_start) return damaged;
  return std::unexpected("its " + damaged->text() + " cannot be read. They are made of " +
                         std::to_string(*records) +
                         " records, which takes longer than a start may: run idem store reindex, "
                         "and start it then. Nothing is lost");
}

}  // namespace

std::expected<Families, std::string> judge_index(Database& db) { return judge(db, false); }

std::expected<Families, std::string> repair_index(Database& db, RunningSection& running,
                                                  const IndexRepair& how) {
  const auto damaged = judge(db, how.is_ordered);
  if (!damaged) return damaged;
  const auto noted = db.noted_damage();
  if (damaged->is_empty()) {
    if (noted && !noted->is_empty()) db.note_damage({});
    return damaged;
  }
  const auto records = records_in(db);
  if (!records) return std::unexpected(records.error());
  db.note_damage(*damaged);
  if (auto renewed = db.renew(*damaged); !renewed) return std::unexpected(renewed.error());
  Reindexing(db, running, *damaged, how).run(*records);
  db.note_damage({});
  return damaged;
}

}  // namespace idem::segments
