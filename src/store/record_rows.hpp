#pragma once

#include <idem/store.hpp>

#include <array>
#include <cstring>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

/// Records, answers and lines of evidence as values of a store that only keeps bytes: the steps are
/// made in this process (core/transitions/snapshot_table.hpp), and the store writes their results
/// on the condition that the record still has the version that was read.
namespace idem {

/// Each change of a value writes a new version, never the same one twice. So a reader can see
/// whether the value has changed since, and a writer whose reply was lost whether it wrote it.
using RowVersion = std::array<std::uint8_t, 16>;

/// Makes versions that differ from all others, also from those of other processes.
class RowVersions {
 public:
  RowVersions();
  RowVersion next() noexcept;

 private:
  RowVersion last_{};
};

/// The part of an answer that a listing shows: its status; the highest bit: its body was not kept.
/// 0: there is no answer.
using AnswerMark = std::uint16_t;
AnswerMark mark_of(const std::optional<StoredResponse>& response) noexcept;
std::optional<StoredResponse> marked_answer(AnswerMark mark);

/// Appends the version, the answer's mark (16 bits, little-endian) and the record as
/// stored_record_codec.hpp encodes it. Redis's commit.lua reads version and state.
void append_row(const RowVersion& version, const Record& record, AnswerMark mark, std::string& out);

struct StoredRow {
  RowVersion version{};
  std::expected<Record, StoreError> record;
  AnswerMark mark = 0;
};
/// Total.
StoredRow parse_row(const RecordId& id, std::string_view bytes);

/// The length of the head (32 bits, little-endian), the head as stored_response_codec.hpp encodes
/// it, the body. Checksums bind both to the record `id`.
std::string to_answer_value(const RecordId& id, const StoredResponse& response);
std::expected<StoredResponse, std::string_view> parse_answer_value(const RecordId& id,
                                                                   std::string_view bytes);

/// A line of the log: its version, stored_evidence.hpp, and a checksum that binds it to the record.
/// Version 1 had no checksum.
std::string to_evidence_value(const RecordId& id, const EvidenceEntry& entry);
std::expected<EvidenceEntry, std::string_view> parse_evidence_value(const RecordId& id,
                                                                    std::string_view bytes);

StoreError damaged_record(const RecordId& id, std::string_view why);

/// A moment as 64 bits, for ByteWriter, and back.
inline std::uint64_t to_bits(StoreTime moment) noexcept {
  return static_cast<std::uint64_t>(moment.time_since_epoch().count());
}
inline StoreTime from_bits(std::uint64_t bits) noexcept {
  return StoreTime(Millis(static_cast<std::int64_t>(bits)));
}

inline std::string_view bytes_of(const RecordId& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}
inline std::string_view bytes_of(const RowVersion& version) noexcept {
  return {reinterpret_cast<const char*>(version.data()), version.size()};
}
/// None: the bytes are no id.
std::optional<RecordId> to_id(std::string_view bytes) noexcept;

struct IdHash {
  std::size_t operator()(const RecordId& id) const noexcept {
    std::size_t hash = 0;  // The id is a digest.
    std::memcpy(&hash, id.bytes.data(), sizeof hash);
    return hash;
  }
};

}  // namespace idem
