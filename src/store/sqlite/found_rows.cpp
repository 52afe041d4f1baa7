#include "store/sqlite/found_rows.hpp"

#include "core/bytes/checksum.hpp"
#include "core/record/stored_fence.hpp"
#include "core/record/stored_record_codec.hpp"
#include "core/record/stored_response_codec.hpp"
#include "store/recovering.hpp"
#include "store/sqlite/evidence_log.hpp"
#include "store/sqlite/running_table.hpp"
#include "store/sqlite/tolerant_rows.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

namespace idem::sqlite {
namespace {

constexpr std::int64_t last_row_number = std::numeric_limits<std::int64_t>::max();

/// The rows of a table in the order of their numbers. Where a page cannot be read, it goes on with
/// the first number after it that can be found.
class RowsPastDamage {
 public:
  RowsPastDamage(sqlite3* db, std::string table, std::string number, std::string columns)
      : db_(db),
        table_(std::move(table)),
        number_(std::move(number)),
        columns_(std::move(columns)) {}

  /// False: some rows cannot be read. Column 0 is the number. `see` returns false to end it.
  bool each(const std::function<bool(TolerantRows&)>& see) {
    bool is_whole = true;
    std::int64_t from = std::numeric_limits<std::int64_t>::min();
    for (;;) {
      const std::string sql =
          fmt::format("SELECT {}, {} FROM {} NOT INDEXED WHERE {} >= {} ORDER BY {}", number_,
                      columns_, table_, number_, from, number_);
      TolerantRows rows(db_, sql.c_str());
      while (rows.step()) {
        const std::int64_t number = rows.integer(0);
        if (!see(rows) || number == last_row_number) return is_whole;
        from = number + 1;
      }
      if (rows.failure().empty()) return is_whole;
      is_whole = false;
      const auto next = first_readable(from);
      if (!next) return false;
      from = *next;
    }
  }

 private:
  enum class Seek : std::uint8_t { row, none, failed };

  Seek seek(std::int64_t from) {
    const std::string sql = fmt::format(
        "SELECT {}, {} FROM {} NOT INDEXED WHERE {} >= {} ORDER BY "
        "{} LIMIT 1",
        number_, columns_, table_, number_, from, number_);
    TolerantRows rows(db_, sql.c_str());
    if (rows.step()) return Seek::row;
    return rows.failure().empty() ? Seek::none : Seek::failed;
  }

  /// After `from`, which cannot be read. None: there is nothing more.
  std::optional<std::int64_t> first_readable(std::int64_t from) {
    std::int64_t bad = std::max<std::int64_t>(from, 0);
    std::int64_t good = bad;
    for (std::int64_t step = 1;; step *= 2) {
      if (step > last_row_number - bad - 1) return std::nullopt;
      good = bad + step;
      const Seek found = seek(good);
      if (found == Seek::none) break;  // Perhaps between the two.
      if (found == Seek::row) break;
      if (step > last_row_number / 4) return std::nullopt;
    }
    while (bad + 1 < good) {
      const std::int64_t middle = bad + (good - bad) / 2;
      (seek(middle) == Seek::failed ? bad : good) = middle;
    }
    return good;
  }

  sqlite3* db_;
  std::string table_;
  std::string number_;
  std::string columns_;
};

std::optional<RecordId> settled_id(std::string_view bytes) {
  RecordId id;
  if (bytes.size() != id.bytes.size()) return std::nullopt;
  bytes.copy(reinterpret_cast<char*>(id.bytes.data()), id.bytes.size());
  return id;
}

/// Adds the request that the record has. False: it cannot be read.
bool add_request(sqlite3* db, Record& record, std::int64_t slot) {
  if (!record.stored_request) return true;
  const std::string sql = fmt::format("SELECT request FROM idem_requests WHERE slot = {}", slot);
  TolerantRows rows(db, sql.c_str());
  const auto request = rows.step() ? without_checksum(record.id, rows.bytes(0)) : std::nullopt;
  if (!request) return false;
  record.stored_request = std::string(*request);
  return true;
}

bool add_answer(Record& record, TolerantRows& row, int answer, int body) {
  if (record.state != State::completed) return true;
  auto response = row.is_null(answer)
                      ? std::unexpected(std::string_view())
                      : decode_checked_answer(record.id, row.bytes(answer), row.bytes(body));
  if (!response) return false;
  record.response = std::move(*response);
  return true;
}

bool each_record(sqlite3* db, bool lossy_alone, const std::function<bool(Record&&)>& see) {
  bool goes_on = true;
  const auto show = [&](Record&& record, bool is_whole) {
    if (!is_whole) lose_bytes(record);
    if (!is_whole || !lossy_alone) goes_on = see(std::move(record));
    return goes_on;
  };
  bool is_whole =
      RowsPastDamage(db, "idem_running", "cell", "id, slot, record").each([&](TolerantRows& row) {
        const auto id = RunningTable::id_in(row.bytes(1));
        if (!id) return true;
        auto record = decode_record(*id, row.bytes(3));
        if (!record) return true;
        const bool has_request = add_request(db, *record, row.integer(2));
        return show(std::move(*record), has_request);
      });
  if (!goes_on) return is_whole;
  is_whole = RowsPastDamage(db, "idem_slots", "slot", "id, record, answer, body")
                 .each([&](TolerantRows& row) {
                   const auto id = settled_id(row.bytes(1));
                   if (!id) return true;
                   auto record = decode_record(*id, row.bytes(2));
                   if (!record) return true;
                   const bool has_all =
                       add_answer(*record, row, 3, 4) && add_request(db, *record, row.integer(0));
                   return show(std::move(*record), has_all);
                 }) &&
             is_whole;
  return is_whole;
}

}  // namespace

bool each_found_record(sqlite3* db, const std::function<bool(Record&&)>& see) {
  return each_record(db, false, see);
}

bool each_lossy_record(sqlite3* db, const std::function<bool(Record&&)>& see) {
  return each_record(db, true, see);
}

std::vector<EvidenceEntry> found_evidence(sqlite3* db, const RecordId& id) {
  const std::string sql = fmt::format(
      "SELECT fence, source, evidence, reason, before_state, after_state, applied, observed_at,"
      " recorded_at, checksum FROM idem_evidence WHERE id = x'{}' ORDER BY line",
      to_hex(id.bytes));
  TolerantRows rows(db, sql.c_str());
  std::vector<EvidenceEntry> entries;
  while (rows.step()) {
    EvidenceEntry entry{.fence = fence_from(static_cast<std::uint64_t>(rows.integer(0))),
                        .source = std::string(rows.bytes(1)),
                        .evidence = std::string(rows.bytes(2)),
                        .reason = std::string(rows.bytes(3)),
                        .before = static_cast<State>(rows.integer(4)),
                        .after = static_cast<State>(rows.integer(5)),
                        .applied = rows.integer(6) != 0,
                        .observed_at = StoreTime(Millis(rows.integer(7))),
                        .recorded_at = StoreTime(Millis(rows.integer(8)))};
    const bool is_sound = rows.is_null(9) || rows.integer(9) == checksum_of_line(id, entry);
    if (is_sound) entries.push_back(std::move(entry));
  }
  return entries;
}

bool copy_rows(sqlite3* from, sqlite3* to, const std::string& table) {
  const std::string all = "SELECT * FROM " + table;
  TolerantRows rows(from, all.c_str());
  while (rows.step()) (void)rows.copy_to(to, table);
  return rows.failure().empty();
}

}  // namespace idem::sqlite
