#include "store/sqlite/read_all_records.hpp"

#include "core/record/stored_record_codec.hpp"
#include "store/sqlite/running_table.hpp"
#include "store/sqlite/tolerant_rows.hpp"

#include <algorithm>
#include <vector>

namespace idem::sqlite {
namespace {

using embedded::IdIndex;

/// A checksum of one of the file's two copies of all ids, in any order. Against accidental damage
/// only.
class IdSum {
 public:
  void add(std::int64_t slot, const RecordId& id) noexcept {
    std::uint64_t mixed = static_cast<std::uint64_t>(slot) * 0x9e3779b97f4a7c15u;
    for (const std::uint8_t byte : id.bytes) mixed = (mixed ^ byte) * 0x100000001b3u;
    sum_ += mixed ^ mixed >> 32;
    ++count_;
  }
  bool operator==(const IdSum&) const = default;

 private:
  std::uint64_t sum_ = 0;
  std::uint64_t count_ = 0;
};

/// 0: it had no attempt, or cannot be read, which its next use reports.
Fence fence_in(const RecordId& id, std::string_view bytes) {
  const auto record = decode_record(id, bytes);
  return record ? record->fence().value_or(0) : 0;
}

/// Shows slot, id and row of each to `see`. The error, a sentence: an id has another length, or
/// SQLite fails.
template <class See>
std::expected<void, std::string> read_settled(sqlite3* db, const char* sql, See see) {
  TolerantRows rows(db, sql);
  while (rows.step()) {
    RecordId id;
    const std::string_view bytes = rows.bytes(1);
    if (bytes.size() != id.bytes.size()) return std::unexpected("a settled record has lost its id");
    bytes.copy(reinterpret_cast<char*>(id.bytes.data()), id.bytes.size());
    see(rows.integer(0), id, rows);
  }
  if (rows.failure().empty()) return {};
  return std::unexpected(rows.failure());
}

}  // namespace

std::expected<AllRecords, std::string> read_all_records(sqlite3* db) {
  Fence highest = 0;
  TolerantRows running(db, "SELECT id, record FROM idem_running");
  while (running.step()) {
    const auto id = RunningTable::id_in(running.bytes(0));
    if (!id) return std::unexpected("a running record has lost its id");
    highest = std::max(highest, fence_in(*id, running.bytes(1)));
  }
  if (!running.failure().empty()) return std::unexpected(running.failure());
  std::vector<IdIndex::Entry> entries;
  IdSum of_rows;
  IdSum of_index;
  auto read = read_settled(db, "SELECT slot, id, record FROM idem_slots NOT INDEXED",
                           [&](std::int64_t slot, const RecordId& id, TolerantRows& row) {
                             of_rows.add(slot, id);
                             entries.push_back({IdIndex::head_of(id), slot});
                             highest = std::max(highest, fence_in(id, row.bytes(2)));
                           });
  if (!read) return std::unexpected(std::move(read.error()));
  read = read_settled(
      db, "SELECT slot, id FROM idem_slots INDEXED BY slots_by_due",
      [&](std::int64_t slot, const RecordId& id, TolerantRows&) { of_index.add(slot, id); });
  if (!read) return std::unexpected(std::move(read.error()));
  if (of_rows != of_index) return std::unexpected("a settled record has two ids");
  return AllRecords{IdIndex(std::move(entries)), highest};
}

}  // namespace idem::sqlite
