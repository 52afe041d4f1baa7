#include "store/mysql/row.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "core/bytes/hex.hpp"
#include "core/record/stored_evidence.hpp"
#include "core/record/stored_fence.hpp"
#include "core/record/stored_response_codec.hpp"
#include "core/transitions/transitions.hpp"
#include "store/mysql/crc32.hpp"
#include "store/mysql/sql_text.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <span>

namespace idem::mysql {
namespace {

struct Column {
  std::string_view name;
  std::string_view in_new_rows{};  ///< A literal, as the table's DEFAULT.
};
// In the order of idem_seal() (schema/mysql/functions/20_seal.sql), then the sum.
constexpr std::array<Column, slot_column_count> columns{{{"id"},
                                                         {"state"},
                                                         {"due_at"},
                                                         {"scope"},
                                                         {"operation"},
                                                         {"generation"},
                                                         {"fingerprint"},
                                                         {"fence"},
                                                         {"token"},
                                                         {"owner", "''"},
                                                         {"locked_until"},
                                                         {"dispatched", "0"},
                                                         {"lease_policy"},
                                                         {"retention"},
                                                         {"tombstone"},
                                                         {"charged", "0"},
                                                         {"recovery_point", "''"},
                                                         {"release_basis", "0"},
                                                         {"last_error_code", "''"},
                                                         {"reconcile_after", "NULL"},
                                                         {"reconcile_attempts", "0"},
                                                         {"upstream_reference", "''"},
                                                         {"provider", "''"},
                                                         {"sealed_key", "''"},
                                                         {"contested", "0"},
                                                         {"created_at"},
                                                         {"changed_at"},
                                                         {"completed_at", "NULL"},
                                                         {"expires_at", "NULL"},
                                                         {"tombstone_until", "NULL"},
                                                         {"has_request", "0"},
                                                         {"answer_status", "NULL"},
                                                         {"body_kept", "NULL"},
                                                         {"record_sum"}}};

constexpr std::size_t summed_columns = slot_sum;  // With the id.

std::string joined_names() {
  std::string all;
  for (const Column& column : columns) (all += all.empty() ? "" : ", ") += column.name;
  return all;
}
const std::string all_columns = joined_names();

constexpr std::size_t slot_text_bytes = 512;  ///< Of a usual record.

/// The text that the checksum is over, as CONCAT_WS and HEX write it.
class Summed {
 public:
  void number(std::string_view digits) {
    next();
    text_ += digits;
  }
  void bytes(std::string_view bytes) {
    next();
    append_hex(text_, bytes, capital_hex_digits);
  }
  std::uint32_t sum() const noexcept { return crc32(text_); }

 private:
  void next() {
    if (!text_.empty()) text_ += '|';
  }
  std::string text_;
};

/// Writes the columns of a row, each as a literal and to the checksum.
class SlotWriter {
 public:
  SlotWriter(std::string& to, std::span<std::uint32_t> ends) : to_(to), ends_(ends), sql_(to) {}

  template <std::integral T>
  SlotWriter& number(T value) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), value).ptr;
    const std::string_view text(digits.data(), static_cast<std::size_t>(end - digits.data()));
    sql_.sql(text);
    summed_.number(text);
    return next();
  }
  SlotWriter& moment(StoreTime value) { return number(value.time_since_epoch().count()); }
  SlotWriter& moment(const std::optional<StoreTime>& value) {
    return value ? moment(*value) : none();
  }
  SlotWriter& none() {
    sql_.sql("NULL");
    summed_.number("");
    return next();
  }
  SlotWriter& bytes(std::string_view value) {
    sql_.bytes(value);
    summed_.bytes(value);
    return next();
  }
  void sum() {
    sql_.number(summed_.sum());
    next();
  }

 private:
  SlotWriter& next() {
    ends_[++column_] = static_cast<std::uint32_t>(to_.size());
    return *this;
  }
  std::string& to_;
  std::span<std::uint32_t> ends_;
  std::size_t column_ = 0;
  SqlText sql_;
  Summed summed_;
};

template <std::size_t N>
std::string_view view(const std::array<std::uint8_t, N>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), N};
}

std::string fingerprint_bytes(const Fingerprint& fingerprint) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(fingerprint.version >> shift & 0xff);
  }
  return bytes.append(view(fingerprint.digest));
}

std::string length_bytes(std::string_view text) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(std::uint64_t{text.size()} >> shift & 0xff);
  }
  return bytes;
}

std::uint32_t answer_sum(const RecordId& id, std::string_view head, std::string_view body) {
  return crc32(body, crc32(head, crc32(length_bytes(head), crc32(bytes_of(id)))));
}

std::uint32_t request_sum(const RecordId& id, std::string_view request) {
  return crc32(request, crc32(bytes_of(id)));
}

/// Reads the columns in their order.
class SlotReader {
 public:
  SlotReader(const Rows& rows, std::size_t row) : rows_(rows), row_(row) {}

  std::string_view bytes() { return rows_.cell(row_, column_++); }
  std::string text() { return std::string(bytes()); }
  std::int64_t number() { return to_number(bytes()); }
  std::uint64_t natural() { return to_unsigned(bytes()); }
  StoreTime moment() { return StoreTime(Millis(number())); }
  std::optional<StoreTime> optional_moment() {
    const bool is_null = rows_.is_null(row_, column_);
    const StoreTime at = moment();
    return is_null ? std::nullopt : std::optional(at);
  }
  bool boolean() { return number() != 0; }
  bool is_null() const { return rows_.is_null(row_, column_); }

 private:
  const Rows& rows_;
  std::size_t row_;
  std::size_t column_ = 0;
};

/// Which columns HEX stands around in idem_seal().
constexpr bool is_hex(std::size_t column) {
  constexpr std::size_t of_bytes[] = {0, 3, 4, 6, 8, 9, 16, 18, 21, 22, 23};
  return std::ranges::find(of_bytes, column) != std::end(of_bytes);
}

std::uint32_t sum_of_row(const Rows& rows, std::size_t row) {
  Summed summed;
  for (std::size_t column = 0; column < summed_columns; ++column) {
    const auto cell = rows.cell(row, column);
    is_hex(column) ? summed.bytes(cell) : summed.number(cell);
  }
  return summed.sum();
}

template <std::size_t N>
void copy(std::string_view from, std::array<std::uint8_t, N>& to) {
  std::memcpy(to.data(), from.data(), std::min(from.size(), N));
}

Fingerprint to_fingerprint(std::string_view bytes) {
  Fingerprint made;
  if (bytes.size() != 4 + made.digest.size()) return made;
  for (const char c : bytes.substr(0, 4)) {
    made.version = made.version << 8 | static_cast<std::uint8_t>(c);
  }
  copy(bytes.substr(4), made.digest);
  return made;
}

Record to_record(SlotReader& cells) {
  Record record;
  copy(cells.bytes(), record.id.bytes);
  record.state = static_cast<State>(cells.number());
  (void)cells.number();  // due_at follows from the rest.
  record.scope = cells.text();
  record.operation = cells.text();
  record.generation = cells.natural();
  record.fingerprint = to_fingerprint(cells.bytes());
  const auto fence = fence_from(cells.natural());
  Token token;
  copy(cells.bytes(), token.bytes);
  if (fence) record.attempt = Attempt{*fence, token};
  record.owner = cells.text();
  record.locked_until = cells.moment();
  record.dispatched = cells.boolean();
  record.lease_policy = static_cast<LeasePolicy>(cells.number());
  record.retention = Millis(cells.number());
  record.tombstone = Millis(cells.number());
  record.charged = cells.natural();
  record.recovery_point = cells.text();
  if (const auto basis = cells.number(); basis != 0) {
    record.release_basis = static_cast<ReleaseBasis>(basis);
  }
  record.last_error_code = cells.text();
  record.reconcile_after = cells.optional_moment();
  record.reconcile_attempts = static_cast<std::uint32_t>(cells.natural());
  record.upstream_reference = cells.text();
  record.provider = cells.text();
  record.sealed_key = cells.text();
  record.is_contested = cells.boolean();
  record.created_at = cells.moment();
  record.changed_at = cells.moment();
  record.completed_at = cells.optional_moment();
  record.expires_at = cells.optional_moment();
  record.tombstone_until = cells.optional_moment();
  if (cells.boolean()) record.stored_request.emplace();
  if (!cells.is_null()) {
    record.response.emplace();
    record.response->status = static_cast<int>(cells.number());
    record.response->body_stored = cells.boolean();
  }
  return record;
}

bool is_possible(const Record& record) {
  const auto state = static_cast<int>(record.state);
  const auto policy = static_cast<int>(record.lease_policy);
  const auto basis = record.release_basis ? static_cast<int>(*record.release_basis) : 1;
  const bool is_answered = record.state == State::completed;
  return state >= 1 && state <= 6 && policy >= 1 && policy <= 3 && basis >= 1 && basis <= 2 &&
         (!is_answered || record.response);
}

}  // namespace

const std::string_view slot_columns = all_columns;

std::string_view slot_column(std::size_t number) noexcept { return columns[number].name; }
std::string_view slot_default(std::size_t number) noexcept { return columns[number].in_new_rows; }

StoreError damaged(const RecordId& id, std::string_view why) {
  return {StoreError::Code::damaged, "the record is damaged: " + std::string(why), id};
}

SlotCells::SlotCells(const Record& record) {
  const auto due = transitions::due_at(record);
  const Token no_token;
  const Token& token = record.attempt ? record.attempt->token : no_token;
  text_.reserve(slot_text_bytes);
  SlotWriter row(text_, ends_);
  row.bytes(bytes_of(record.id)).number(static_cast<int>(record.state));
  row.number(due ? due->time_since_epoch().count() : never_due);
  row.bytes(record.scope).bytes(record.operation).number(record.generation);
  row.bytes(fingerprint_bytes(record.fingerprint)).number(stored_fence(record.fence()));
  row.bytes(view(token.bytes)).bytes(record.owner).moment(record.locked_until);
  row.number(record.dispatched ? 1 : 0).number(static_cast<int>(record.lease_policy));
  row.number(record.retention.count()).number(record.tombstone.count()).number(record.charged);
  row.bytes(record.recovery_point);
  row.number(record.release_basis ? static_cast<int>(*record.release_basis) : 0);
  row.bytes(record.last_error_code).moment(record.reconcile_after);
  row.number(record.reconcile_attempts).bytes(record.upstream_reference).bytes(record.provider);
  row.bytes(record.sealed_key).number(record.is_contested ? 1 : 0);
  row.moment(record.created_at).moment(record.changed_at).moment(record.completed_at);
  row.moment(record.expires_at).moment(record.tombstone_until);
  row.number(record.stored_request ? 1 : 0);
  if (record.response) {
    row.number(record.response->status).number(record.response->body_stored ? 1 : 0);
  } else {
    row.none().none();
  }
  row.sum();
}

std::string_view SlotCells::operator[](std::size_t column) const noexcept {
  return std::string_view(text_).substr(ends_[column], ends_[column + 1] - ends_[column]);
}

void append_answer(const Record& record, std::string& to) {
  SqlText sql(to);
  if (!record.response) {
    sql.sql("NULL, NULL, NULL");
    return;
  }
  std::string head;
  encode_answer(*record.response, head);
  const std::string& body = record.response->body;
  sql.bytes(head).sql(", ").bytes(body).sql(", ").number(answer_sum(record.id, head, body));
}

void append_request(const Record& record, std::string& to) {
  SqlText sql(to);
  if (!record.stored_request) {
    sql.sql("NULL, NULL");
    return;
  }
  const std::string& request = *record.stored_request;
  sql.bytes(request).sql(", ").number(request_sum(record.id, request));
}

std::optional<SlotRow> read_slot(const Rows& rows, std::size_t row) {
  const auto id = to_id(rows.cell(row, 0));
  if (!id) return std::nullopt;
  if (to_unsigned(rows.cell(row, summed_columns)) != sum_of_row(rows, row)) {
    return SlotRow{*id, std::unexpected(damaged(*id, checksum_differs))};
  }
  SlotReader cells(rows, row);
  Record record = to_record(cells);
  if (!is_possible(record)) {
    return SlotRow{*id, std::unexpected(damaged(*id, "it contradicts itself"))};
  }
  return SlotRow{*id, std::move(record)};
}

std::expected<void, std::string_view> read_answer(const Rows& rows, std::size_t row,
                                                  std::size_t column, Record& into) {
  if (!into.response) return {};
  if (rows.is_null(row, column)) return std::unexpected("its answer is missing");
  const auto head = rows.cell(row, column);
  const auto body = rows.cell(row, column + 1);
  if (to_unsigned(rows.cell(row, column + 2)) != answer_sum(into.id, head, body)) {
    return std::unexpected("its answer's checksum does not match");
  }
  auto answer = decode_answer(head);
  if (!answer) return std::unexpected(answer.error());
  answer->body = std::string(body);
  into.response = std::move(*answer);
  return {};
}

std::expected<void, std::string_view> read_request(const Rows& rows, std::size_t row,
                                                   std::size_t column, Record& into) {
  if (!into.stored_request) return {};
  if (rows.is_null(row, column)) return std::unexpected("its request is missing");
  const auto request = rows.cell(row, column);
  if (to_unsigned(rows.cell(row, column + 1)) != request_sum(into.id, request)) {
    return std::unexpected("its request's checksum does not match");
  }
  into.stored_request = std::string(request);
  return {};
}

// CRC-32, as the functions of the schema write such lines, too.
std::string to_evidence_value(const RecordId& id, const EvidenceEntry& entry) {
  std::string value = encode_evidence(entry);
  const std::uint32_t sum = crc32(value, crc32(bytes_of(id)));
  char bytes[sizeof sum];
  ByteWriter(bytes).number(sum);
  return value.append(bytes, sizeof sum);
}

std::expected<EvidenceEntry, StoreError> read_evidence(const RecordId& id, std::string_view value) {
  const std::size_t length = value.size() - std::min(value.size(), sizeof(std::uint32_t));
  const std::string_view line = value.substr(0, length);
  const auto sum = ByteReader(value.substr(length)).number<std::uint32_t>();
  if (value.size() == length || sum != crc32(line, crc32(bytes_of(id)))) {
    return std::unexpected(damaged(id, evidence_differs));
  }
  auto entry = decode_evidence(line);
  if (!entry) return std::unexpected(damaged(id, entry.error()));
  return std::move(*entry);
}

}  // namespace idem::mysql
