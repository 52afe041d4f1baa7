#pragma once

#include "store/mysql/connection.hpp"

#include <idem/store.hpp>

#include <array>

/// Between a record and the columns of its row in idem_slots.
namespace idem::mysql {

/// All columns but answer and request: first the id, last the checksum.
extern const std::string_view slot_columns;
inline constexpr std::size_t slot_column_count = 34;
inline constexpr std::size_t slot_id = 0;
inline constexpr std::size_t slot_sum = slot_column_count - 1;
std::string_view slot_column(std::size_t number) noexcept;
/// What the table has for a column that a new row does not name, as a literal; empty: a new row
/// names it.
std::string_view slot_default(std::size_t number) noexcept;

inline constexpr std::string_view answer_column_names[] = {"answer_head", "answer_body",
                                                           "answer_sum"};
inline constexpr std::string_view request_column_names[] = {"request", "request_sum"};
inline constexpr std::string_view answer_columns = "answer_head, answer_body, answer_sum";
inline constexpr std::string_view request_columns = "request, request_sum";

/// A record whose state time never ends has this as due_at.
inline constexpr std::int64_t never_due = INT64_MAX;

/// The values of slot_columns, as literals.
class SlotCells {
 public:
  explicit SlotCells(const Record& record);
  std::string_view operator[](std::size_t column) const noexcept;

 private:
  std::string text_;
  std::array<std::uint32_t, slot_column_count + 1> ends_{};  ///< Behind each, from the second on.
};
/// Appends the values of answer_columns; NULLs without an answer. Likewise of a request.
void append_answer(const Record& record, std::string& to);
void append_request(const Record& record, std::string& to);

StoreError damaged(const RecordId& id, std::string_view why);

struct SlotRow {
  RecordId id;
  /// The answer is a status without fields and body, and a request is empty. An error: the row is
  /// not as it was written.
  std::expected<Record, StoreError> record;
};
/// A row of slot_columns. None: its id is none.
std::optional<SlotRow> read_slot(const Rows& rows, std::size_t row);

/// Put the answer (answer_columns from `column` on) or the request into a record. The error says
/// why it is damaged.
std::expected<void, std::string_view> read_answer(const Rows& rows, std::size_t row,
                                                  std::size_t column, Record& into);
std::expected<void, std::string_view> read_request(const Rows& rows, std::size_t row,
                                                   std::size_t column, Record& into);

/// A line of the evidence log with its checksum, and back.
std::string to_evidence_value(const RecordId& id, const EvidenceEntry& entry);
std::expected<EvidenceEntry, StoreError> read_evidence(const RecordId& id, std::string_view value);

}  // namespace idem::mysql
