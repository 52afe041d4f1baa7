#include "store/record_rows.hpp"

#include "core/bytes/byte_cursor.hpp"
#include "core/bytes/checksum.hpp"
#include "core/record/stored_evidence.hpp"
#include "core/record/stored_record_codec.hpp"
#include "core/record/stored_response_codec.hpp"

#include <idem/fingerprint.hpp>

#include <cstring>

namespace idem {
namespace {

constexpr std::size_t row_head_bytes = std::tuple_size_v<RowVersion> + 2;
// More than one bit apart, so that one damaged bit cannot make a line one without a checksum.
constexpr std::uint8_t evidence_version_unchecked = 1;
constexpr std::uint8_t evidence_version = 2;
constexpr AnswerMark body_not_stored = 0x8000;

}  // namespace

RowVersions::RowVersions() { random_bytes(last_); }

// The first half is random for this process, the second counts.
RowVersion RowVersions::next() noexcept {
  std::uint64_t count = 0;
  std::memcpy(&count, last_.data() + 8, sizeof count);
  ++count;
  std::memcpy(last_.data() + 8, &count, sizeof count);
  return last_;
}

AnswerMark mark_of(const std::optional<StoredResponse>& response) noexcept {
  if (!response) return 0;
  const auto status = static_cast<AnswerMark>(response->status);
  return response->body_stored ? status : status | body_not_stored;
}

std::optional<StoredResponse> marked_answer(AnswerMark mark) {
  if (mark == 0) return std::nullopt;
  StoredResponse response;
  response.status = mark & ~body_not_stored;
  response.body_stored = (mark & body_not_stored) == 0;
  return response;
}

void append_row(const RowVersion& version, const Record& record, AnswerMark mark,
                std::string& out) {
  std::string encoded;
  encode_record(record, encoded);
  const std::size_t before = out.size();
  out.resize(before + row_head_bytes);
  ByteWriter to(out.data() + before);
  to.bytes(version);
  to.number(mark);
  out += encoded;
}

StoredRow parse_row(const RecordId& id, std::string_view bytes) {
  StoredRow row;
  ByteReader in(bytes);
  in.bytes(row.version);
  row.mark = in.number<std::uint16_t>();
  if (in.is_cut_short()) {
    row.record = std::unexpected(damaged_record(id, "it is cut short"));
    return row;
  }
  auto record = decode_record(id, bytes.substr(row_head_bytes));
  if (!record) {
    row.record = std::unexpected(damaged_record(id, record.error()));
    return row;
  }
  row.record = std::move(*record);
  return row;
}

std::string to_answer_value(const RecordId& id, const StoredResponse& response) {
  std::string head;
  encode_checked_answer(id, response, head);
  std::string out(sizeof(std::uint32_t), '\0');
  ByteWriter(out.data()).number(static_cast<std::uint32_t>(head.size()));
  out += head;
  out += response.body;
  return out;
}

std::expected<StoredResponse, std::string_view> parse_answer_value(const RecordId& id,
                                                                   std::string_view bytes) {
  ByteReader in(bytes);
  const std::string_view head = in.framed();
  if (in.is_cut_short()) return std::unexpected("its answer is cut short");
  return decode_checked_answer(id, head, bytes.substr(framed_bytes(head)));
}

std::string to_evidence_value(const RecordId& id, const EvidenceEntry& entry) {
  std::string out(1, static_cast<char>(evidence_version));
  out += encode_evidence(entry);
  append_checksum(id, out);
  return out;
}

std::expected<EvidenceEntry, std::string_view> parse_evidence_value(const RecordId& id,
                                                                    std::string_view bytes) {
  const auto version = ByteReader(bytes).number<std::uint8_t>();
  if (version == evidence_version_unchecked) return decode_evidence(bytes.substr(1));
  if (version != evidence_version) {
    return std::unexpected("a line of its evidence is of an unknown version");
  }
  const auto sound = without_checksum(id, bytes);
  if (!sound) return std::unexpected(evidence_differs);
  return decode_evidence(sound->substr(1));
}

StoreError damaged_record(const RecordId& id, std::string_view why) {
  return {StoreError::Code::damaged,
          "the record " + to_hex(id.bytes) + " is damaged: " + std::string(why), id};
}

std::optional<RecordId> to_id(std::string_view bytes) noexcept {
  RecordId id;
  if (bytes.size() != id.bytes.size()) return std::nullopt;
  std::memcpy(id.bytes.data(), bytes.data(), bytes.size());
  return id;
}

}  // namespace idem
