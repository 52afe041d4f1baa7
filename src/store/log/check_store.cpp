#include "store/log/check_store.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "core/record/stored_record_codec.hpp"
#include "core/record/stored_response_codec.hpp"
#include "core/record/which_store.hpp"
#include "core/transitions/transitions.hpp"
#include "store/embedded/shard_of.hpp"
#include "store/file_findings.hpp"
#include "store/log/compaction.hpp"
#include "store/log/due_lists.hpp"
#include "store/log/index_repair.hpp"
#include "store/log/journal_lines.hpp"
#include "store/log/keys.hpp"
#include "store/log/look.hpp"
#include "store/log/shards.hpp"
#include "store/log/work_lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace idem::segments {
namespace {

constexpr std::size_t checked_bytes_at_once = 1UL << 20U;
constexpr std::size_t checked_ids_at_once = 4'096;
constexpr std::uint64_t checked_between_progress = 4'096;
constexpr const char* index_is_made_anew =
    "nothing is lost: a start makes it anew if it meets it, and idem store reindex does in any "
    "case";

class Checking {
 public:
  Checking(StoreLook& look, std::uint32_t shard, const StoreFileProgress& progress)
      : look_(look),
        db_(*look.shards[shard].db),
        running_(*look.shards[shard].running),
        facts_(look.shards[shard].facts),
        shard_(shard),
        progress_(progress) {
    // A record takes its fence along when it is moved.
    for (const Look& one : look.shards) {
      fences_ = std::max(fences_, one.facts.noted_fence);
      auto& ids = running_at_.emplace_back();
      if (!look.layout.is_moving) continue;
      one.running->visit([&](const embedded::RunningCells::Found& found) { ids.insert(found.id); });
    }
  }

  StoreFileReport check() {
    meta();
    damaged_ = Families(unreadable_of(db_, Families::all()).bits() | db_.unopened().bits());
    say_damage(damaged_.both(derived_families), index_is_made_anew);
    say_damage(damaged_.without(derived_families), file_todo::table);
    if (damaged_.has(Family::meta)) return std::move(report_);
    running();
    for (const std::uint32_t file : db_.files_of_versions()) versions_in(file);
    ids();
    files();
    due_lists();
    evidence();
    journals();
    if (findings_.highest_fence > fences_) {
      findings_.add("fences",
                    fmt::format("a record has fence {}, and the highest that was granted is noted "
                                "as {}",
                                findings_.highest_fence, fences_),
                    "nothing at once: a start goes on above both; look at the disk");
    }
    if (progress_) progress_(all_, all_);
    return std::move(report_);
  }

 private:
  void say_damage(const Families& families, const char* todo) {
    if (families.is_empty()) return;
    findings_.add("index", "its " + families.text() + " cannot be read", todo);
  }

  void meta() {
    if (facts_.identity) report_.store_id = store_id_text(facts_.identity->store_id);
    // The epoch: a recovery did not know of which moment it is.
    if (facts_.copied_at.value_or(0) != 0) report_.copied_at = from_bits(*facts_.copied_at);
    const auto& counts = facts_.counts.by_state;
    all_ = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  }

  void running() {
    running_.visit([&](const embedded::RunningCells::Found& found) {
      const auto settled = db_.ids().find(found.id);
      if (settled && !settled->is_gone()) {
        findings_.add(found.id, "it is found twice, as running and as settled", file_todo::record);
      }
      const auto record = decode_record(found.id, found.record);
      if (!record) return findings_.add(found.id, record.error(), file_todo::record);
      if (record->state != State::in_progress) {
        findings_.add(found.id, "it is not running, but among the running records",
                      file_todo::record);
      }
      count(*record);
      request(*record);
    });
  }

  std::uint32_t home_of(const RecordId& id) const {
    return embedded::shard_of(id, look_.layout.shards);
  }

  /// A move that was cut off may leave a record in several shards: it counts in its own one, or
  /// else in the first.
  bool counts_elsewhere(const RecordId& id) const {
    const std::uint32_t home = home_of(id);
    if (!look_.layout.is_moving || home == shard_) return false;
    const auto has = [&](std::uint32_t other) {
      const auto settled = look_.shards[other].db->ids().find(id);
      return (settled && !settled->is_gone()) || running_at_[other].contains(id);
    };
    for (std::uint32_t other = 0; other < shard_; ++other) {
      if (has(other)) return true;
    }
    return has(home);
  }

  void count(const Record& record) {
    if (counts_elsewhere(record.id)) return;
    const std::uint32_t home = home_of(record.id);
    if (home != shard_ && !look_.layout.is_moving) {
      findings_.add(
          record.id,
          fmt::format("it is in shard {}, and nobody looks for it but in {}", shard_, home),
          file_todo::key_lost);
    }
    const auto state = static_cast<std::size_t>(record.state);
    if (state < report_.by_state.size()) ++report_.by_state[state];
    findings_.highest_fence = std::max(findings_.highest_fence, record.fence().value_or(0));
  }

  void request(const Record& record) {
    if (!record.stored_request) return;
    if (damaged_.has(Family::requests)) return;
    const auto found = db_.find(Family::requests, bytes_of(record.id), bytes_);
    if (!found || !*found) {
      return findings_.add(record.id, "its request is missing", file_todo::record);
    }
    if (!without_checksum(record.id, bytes_)) {
      findings_.add(record.id, "its request's checksum does not match", file_todo::record);
    }
  }

  /// In the order in which they are on the disk.
  void versions_in(std::uint32_t file) {
    const std::uint64_t end = db_.end_of_file(file);
    std::string part;
    std::uint64_t at = 0;
    for (std::size_t size = checked_bytes_at_once; at < end;) {
      const std::size_t some = std::min<std::uint64_t>(size, end - at);
      const std::uint64_t place = std::uint64_t{file} << 32U | at;
      if (!db_.read_version(place, some, part)) break;
      std::size_t seen = 0;
      while (const auto version = version_in(std::string_view(part).substr(seen))) {
        version_at(place + seen, *version);
        seen += version->bytes.size();
      }
      // One that is larger than the part, or the file is damaged here.
      if (seen == 0 && some == end - at) break;
      size = seen == 0 ? size * 2 : checked_bytes_at_once;
      at += seen;
    }
    if (at < end) unread_.emplace(file, at);
  }

  void version_at(std::uint64_t place, const Version& version) {
    const auto id = to_id(version.id);
    const auto present = id ? db_.ids().find(*id) : std::unexpected(std::string_view());
    if (!present || present->place != place) return;  // An earlier version, or ids() tells.
    present_version(*present, version);
  }

  void present_version(const IdEntry& present, const Version& version) {
    const RecordId& id = present.id;
    if (++present_ % checked_between_progress == 0 && progress_) {
      progress_(std::min(present_, all_), all_);
    }
    present_bytes_[static_cast<std::uint32_t>(present.place >> 32U)] += present.size;
    const auto record = decode_record(id, version.record);
    if (!record) return findings_.add(id, record.error(), file_todo::record);
    count(*record);
    if (const auto why = why_damaged(present, version, *record); !why.empty()) {
      return findings_.add(id, why, file_todo::record);
    }
    request(*record);
    if (!damaged_.has(Family::work) && !WorkLists::have(db_, *record)) {
      findings_.add(id, "it is missing in a list of open records", file_todo::schedule);
    }
    if (transitions::due_at(*record) && DueLists::has(record->state)) ++due_;
  }

  static std::string_view why_damaged(const IdEntry& present, const Version& version,
                                      const Record& record) {
    if (version.bytes.size() != present.size) return "its row is damaged";
    if (record.state != present.state) return "its state is not that of its row";
    if (record.state == State::in_progress) return "it is running, but among the settled records";
    if (record.state != State::completed) return {};
    if (version.answer.empty()) return "its answer is missing";
    const auto answer = decode_checked_answer(record.id, version.answer, version.body);
    return answer ? std::string_view() : answer.error();
  }

  /// Each id once: that it has a version, and those in parts that could not be read one by one.
  void ids() {
    std::uint64_t found = 0;
    std::uint64_t state_count = 0;
    std::optional<RecordId> after;
    bool has_damage = false;
    do {
      const auto slice = db_.ids().slice(after, checked_ids_at_once);
      has_damage = has_damage || slice.has_damage;
      for (const IdEntry& entry : slice.entries) {
        ++found;
        const auto unread = unread_.find(static_cast<std::uint32_t>(entry.place >> 32U));
        const bool is_seen =
            unread == unread_.end() || (entry.place & 0xffffffffU) < unread->second;
        if (!is_seen) alone(entry);
      }
      after = slice.after;
    } while (after);
    for (const std::uint64_t count : facts_.counts.by_state) state_count += count;
    if (has_damage) {
      findings_.add("table of ids", "pages of it are damaged: their keys are refused",
                    file_todo::table);
    } else if (present_ != found) {
      missing();
    } else if (found < state_count) {
      findings_.add("table of ids",
                    fmt::format("{} records are counted, and it has {}: the keys of those that are "
                                "missing would run again",
                                state_count, found),
                    file_todo::key_lost);
    } else if (found != state_count) {
      findings_.add("counts",
                    fmt::format("{} records are counted, and there are {}", state_count, found),
                    "nothing at once: lists and limits are right; look at the disk");
    }
  }

  void alone(const IdEntry& entry) {
    std::string bytes;
    const bool is_there = db_.read_version(entry.place, entry.size, bytes);
    const auto version = is_there ? version_in(bytes) : std::nullopt;
    if (!version || version->id != bytes_of(entry.id)) {
      ++present_;
      return findings_.add(entry.id, is_there ? "its row is damaged" : "its bytes are missing",
                           file_todo::record);
    }
    present_version(entry, *version);
  }

  /// Places at which no version begins, although their files were read.
  void missing() {
    std::optional<RecordId> after;
    std::string bytes;
    do {
      const auto slice = db_.ids().slice(after, checked_ids_at_once);
      for (const IdEntry& entry : slice.entries) {
        const bool is_there = db_.read_version(entry.place, entry.size, bytes);
        const auto version = is_there ? version_in(bytes) : std::nullopt;
        if (version && version->id == bytes_of(entry.id)) continue;
        findings_.add(entry.id, is_there ? "its row has another id" : "its bytes are missing",
                      file_todo::record);
      }
      after = slice.after;
    } while (after);
  }

  /// A file without present versions is deleted, so what is noted must not be too little.
  void files() {
    if (damaged_.has(Family::segments)) return;
    std::set<std::uint32_t> noted_files;
    auto at = db_.iterate(Family::segments);
    for (at.to_first(); at.is_on_key(); at.next()) {
      const auto file = static_cast<std::uint32_t>(ordered_at(at.key(), 0));
      const std::uint64_t noted = ordered_at(at.value(), 0);
      noted_files.insert(file);
      // Those of records that cannot be read are not counted.
      const bool fits =
          report_.found == 0 ? noted == present_bytes_[file] : noted >= present_bytes_[file];
      if (fits) continue;
      findings_.add(
          fmt::format("file of versions {}", file),
          fmt::format("{} bytes are noted as present, and {} are", noted, present_bytes_[file]),
          file_todo::table);
    }
    for (const auto& [file, bytes] : present_bytes_) {
      if (bytes == 0 || noted_files.contains(file)) continue;
      findings_.add(fmt::format("file of versions {}", file),
                    fmt::format("it is not noted, and has {} bytes of records", bytes),
                    file_todo::table);
    }
  }

  void due_lists() {
    if (damaged_.has(Family::due)) return;
    std::uint64_t listed = 0;
    bool is_whole = true;
    auto at = db_.iterate(Family::due);
    for (at.to_first(); at.is_on_key(); at.next()) {
      is_whole = DueLists::each(at.key(), at.value(),
                                [&](const DueLists::Entry& entry) {
                                  const auto present = db_.ids().find(entry.id);
                                  const auto place = static_cast<std::uint64_t>(entry.place);
                                  if (present && present->place == place) ++listed;
                                }) &&
                 is_whole;
    }
    if (!is_whole) {
      findings_.add("lists of what is due", "one is damaged", index_is_made_anew);
    } else if (report_.found == 0 && listed != due_) {
      findings_.add("lists of what is due",
                    fmt::format("{} records have an end, and {} are listed", due_, listed),
                    file_todo::schedule);
    }
  }

  void evidence() {
    if (damaged_.has(Family::evidence)) return;
    auto at = db_.iterate(Family::evidence);
    for (at.to_first(); at.is_on_key(); at.next()) {
      ++report_.evidence;  // Twice, if a move was cut off between their two places.
      const auto id = to_id(at.key().substr(0, sizeof(RecordId::bytes)));
      if (id && parse_evidence_value(*id, at.value())) continue;
      findings_.add(id.value_or(RecordId{}), "a line of its evidence does not match its checksum",
                    file_todo::evidence);
    }
  }

  void journals() {
    if (damaged_.has(Family::journals)) return;
    std::string journal;
    JournalEnd last;
    JournalLines::each(
        db_, [&](const std::string& name, const JournalLine& line, std::uint64_t bytes) {
          ++report_.journal_lines;
          if (name != journal) last = {};
          journal = name;
          const bool follows = line.seq == last.last + 1 && bytes == last.bytes + line.bytes.size();
          if (line.is_damaged || !follows) {
            findings_.add(fmt::format("journal {}, line {}", name, line.seq),
                          line.is_damaged ? "it does not match its checksum"
                                          : "it does not follow from the line before",
                          file_todo::line_of(name));
          }
          last = {line.seq, bytes};
        });
  }

  StoreLook& look_;
  std::vector<std::set<RecordId>> running_at_;  ///< Of each shard, after a move that was cut off.
  Database& db_;
  RunningSection& running_;
  const ShardFacts& facts_;
  std::uint32_t shard_;
  const StoreFileProgress& progress_;
  StoreFileReport report_;
  FileFindings findings_{report_};
  Families damaged_;
  Fence fences_ = 0;
  std::uint64_t all_ = 0;
  std::uint64_t present_ = 0;
  std::uint64_t due_ = 0;  ///< Records that a list of what is due has to name.
  std::map<std::uint32_t, std::uint64_t> present_bytes_;
  std::map<std::uint32_t, std::uint64_t> unread_;  ///< From where on a file could not be read.
  std::string bytes_;
};

/// To the report of the first shard.
void add(StoreFileReport& sum, StoreFileReport&& shard) {
  for (std::size_t state = 0; state < sum.by_state.size(); ++state) {
    sum.by_state[state] += shard.by_state[state];
  }
  sum.evidence += shard.evidence;
  sum.journal_lines += shard.journal_lines;
  sum.found += shard.found;
  for (StoreFinding& finding : shard.findings) {
    if (sum.findings.size() < file_findings_max) sum.findings.push_back(std::move(finding));
  }
}

}  // namespace

std::expected<StoreFileReport, StoreFileError> check_store(const std::string& path,
                                                           const StoreFileProgress& progress) {
  auto look = look_at_store(path, CutOffMove::shown);
  if (!look) return std::unexpected(std::move(look.error()));
  const auto shards = static_cast<std::uint32_t>(look->shards.size());
  StoreFileReport report;
  FoundEnd end;
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    end.join(look->shards[shard].db->found_end());
    const StoreFileProgress part = part_of(progress, shard, shards);
    auto checked = Checking(*look, shard, part).check();
    if (shard == 0) {
      report = std::move(checked);
      continue;
    }
    add(report, std::move(checked));
  }
  report.bytes = bytes_below(path);
  report.newest_record = end.newest_record;
  report.last_clean_stop = end.stopped_at;
  report.is_move_cut_off = look->layout.is_moving;
  return report;
}

}  // namespace idem::segments
