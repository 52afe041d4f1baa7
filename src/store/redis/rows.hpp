#pragma once

#include <idem/store.hpp>

#include <array>
#include <cstring>
#include <expected>
#include <string>
#include <string_view>

/// The format of records in Redis: strings of bytes, under keys that begin with their bucket.
namespace idem::redis {

/// Each change of a value writes a new version, never the same one twice. So a reader can see
/// whether the value has changed since.
using Version = std::array<std::uint8_t, 16>;

/// Makes versions that differ from all others, also from those of other processes.
class Versions {
 public:
  Versions();
  Version next() noexcept;

 private:
  Version last_{};
};

/// The part of an answer that a listing shows: its status; the highest bit: its body was not kept.
/// 0: there is no answer.
using AnswerMark = std::uint16_t;
AnswerMark mark_of(const std::optional<StoredResponse>& response) noexcept;
std::optional<StoredResponse> marked_answer(AnswerMark mark);

/// Appends the version, the answer's mark (16 bits, little-endian) and the record as
/// stored_record_codec.hpp encodes it. commit.lua reads version and state.
void append_row(const Version& version, const Record& record, AnswerMark mark, std::string& out);

struct Row {
  Version version{};
  std::expected<Record, StoreError> record;
  AnswerMark mark = 0;
};
/// Total.
Row parse_row(const RecordId& id, std::string_view bytes);

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

StoreError damaged(const RecordId& id, std::string_view why);

/// A moment as 64 bits, for ByteWriter, and back.
inline std::uint64_t to_bits(StoreTime moment) noexcept {
  return static_cast<std::uint64_t>(moment.time_since_epoch().count());
}
inline StoreTime from_bits(std::uint64_t bits) noexcept {
  return StoreTime(Millis(static_cast<std::int64_t>(bits)));
}

/// The first byte of a record's id chooses its bucket, so the buckets in order hold the records in
/// order. A bucket's keys share a hash tag: a cluster keeps them in one slot, so that a script may
/// write to all of them at once.
inline constexpr std::size_t bucket_count = 256;
inline std::size_t bucket_of(const RecordId& id) noexcept { return id.bytes[0]; }

inline std::string_view bytes_of(const RecordId& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}
inline std::string_view bytes_of(const Version& version) noexcept {
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

class Names {
 public:
  explicit Names(const std::string& prefix);

  struct Place {
    std::string tag;  ///< In braces: the beginning of each of its keys.
    unsigned slot = 0;
  };
  const Place& bucket(std::size_t number) const noexcept { return buckets_[number]; }
  const Place& of(const RecordId& id) const noexcept { return buckets_[bucket_of(id)]; }
  const Place& identity() const noexcept { return identity_; }
  const Place& journals() const noexcept { return journals_; }

 private:
  std::array<Place, bucket_count> buckets_;
  Place identity_;
  Place journals_;
};

/// The one set of its bucket that a record is in, and its score there.
struct Listing {
  std::string_view set;
  std::string place;
};
inline constexpr std::string_view sweep_set = "due:sweep";
inline constexpr std::string_view reap_set = "due:reap";
inline constexpr std::string_view unknown_set = "unknown";
inline constexpr std::string_view pending_set = "pending";
Listing listing_of(const Record& record);

/// Names of the bucket's counters.
std::string counter_of(State state);
std::string counter_of_operation(std::string_view operation);
std::string counter_of_generation(std::uint64_t generation);
/// Counters of the scopes' usage: a hash of their own, as there may be many scopes.
inline constexpr std::string_view usage_hash = "usage";
std::string counter_of_active(std::string_view scope);
std::string counter_of_bytes(std::string_view scope);

}  // namespace idem::redis
