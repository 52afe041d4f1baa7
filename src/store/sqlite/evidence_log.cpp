#include "store/sqlite/evidence_log.hpp"

#include "core/bytes/checksum.hpp"
#include "core/record/stored_evidence.hpp"
#include "core/record/stored_fence.hpp"
#include "store/sqlite/slot_table.hpp"

#include <bit>

namespace idem::sqlite {

std::int64_t checksum_of_line(const RecordId& id, const EvidenceEntry& entry) {
  return std::bit_cast<std::int64_t>(checksum_of(id, encode_evidence(entry)));
}

EvidenceLog::EvidenceLog(sqlite3* db)
    : append_(db,
              "INSERT INTO idem_evidence (id, fence, source, evidence, reason, before_state, "
              "after_state,"
              " applied, observed_at, recorded_at, checksum)"
              " VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)"),
      read_(db,
            "SELECT fence, source, evidence, reason, before_state, after_state, applied,"
            " observed_at, recorded_at, checksum FROM idem_evidence WHERE id = ?1 ORDER BY line") {}

void EvidenceLog::append(const RecordId& id, const EvidenceEntry& entry) {
  append_.bind_bytes(1, id.bytes);
  append_.bind(2, static_cast<std::int64_t>(stored_fence(entry.fence)));
  append_.bind_text(3, entry.source);
  append_.bind_text(4, entry.evidence);
  append_.bind_text(5, entry.reason);
  append_.bind(6, static_cast<std::int64_t>(entry.before));
  append_.bind(7, static_cast<std::int64_t>(entry.after));
  append_.bind(8, entry.applied ? 1 : 0);
  append_.bind(9, entry.observed_at.time_since_epoch().count());
  append_.bind(10, entry.recorded_at.time_since_epoch().count());
  append_.bind(11, checksum_of_line(id, entry));
  append_.run();
}

RecordTable::Log EvidenceLog::read(const RecordId& id) {
  std::vector<EvidenceEntry> entries;
  read_.bind_bytes(1, id.bytes);
  while (read_.step()) {
    entries.push_back({.fence = fence_from(static_cast<std::uint64_t>(read_.integer(0))),
                       .source = std::string(read_.bytes(1)),
                       .evidence = std::string(read_.bytes(2)),
                       .reason = std::string(read_.bytes(3)),
                       .before = static_cast<State>(read_.integer(4)),
                       .after = static_cast<State>(read_.integer(5)),
                       .applied = read_.integer(6) != 0,
                       .observed_at = StoreTime(Millis(read_.integer(7))),
                       .recorded_at = StoreTime(Millis(read_.integer(8)))});
    if (read_.is_null(9) || read_.integer(9) == checksum_of_line(id, entries.back())) continue;
    read_.reset();
    return std::unexpected(unreadable(id, evidence_differs));
  }
  return entries;
}

}  // namespace idem::sqlite
