#pragma once

#include <idem/store.hpp>

#include <array>
#include <expected>
#include <string>
#include <string_view>

/// How records lie in Redis: texts of bytes, under names that begin with their bucket.
namespace idem::redis {

/// What is written anew with each change of a value, and is never written twice: who knows it knows
/// whether somebody wrote there since.
using Version = std::array<std::uint8_t, 16>;

/// Each call gives another one, also across processes.
class Versions {
 public:
  Versions();
  Version next() noexcept;

 private:
  Version last_{};
};

/// What a listing shows of an answer: its status, and by the highest bit that its body was not
/// kept. 0: there is no answer.
using AnswerMark = std::uint16_t;
AnswerMark mark_of(const std::optional<StoredResponse>& response) noexcept;
std::optional<StoredResponse> marked_answer(AnswerMark mark);

/// The version, the answer's mark (16 bits, little-endian), then the record as
/// stored_record_codec.hpp has it. commit.lua reads its version and its state.
void append_row(const Version& version, const Record& record, AnswerMark mark, std::string& out);

struct Row {
  Version version{};
  std::expected<Record, StoreError> record;
  AnswerMark mark = 0;
};
/// Total.
Row parse_row(const RecordId& id, std::string_view bytes);

/// The length of the head (32 bits, little-endian), the head as stored_response_codec.hpp has it,
/// the body. Both are of the record `id` and no other.
std::string to_answer_value(const RecordId& id, const StoredResponse& response);
std::expected<StoredResponse, std::string_view> parse_answer_value(const RecordId& id,
                                                                   std::string_view bytes);

std::string to_evidence_value(const EvidenceEntry& entry);
std::expected<EvidenceEntry, std::string_view> parse_evidence_value(std::string_view bytes);

StoreError damaged(const RecordId& id, std::string_view why);

/// Records are spread over so many buckets by the first byte of their id, so that going through
/// the buckets goes through the records in order. A bucket's keys share a hash tag: a cluster keeps
/// them together, and a script may write to all of them at once.
inline constexpr std::size_t bucket_count = 256;
inline std::size_t bucket_of(const RecordId& id) noexcept { return id.bytes[0]; }

inline std::string_view bytes_of(const RecordId& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}
inline std::string_view bytes_of(const Version& version) noexcept {
  return {reinterpret_cast<const char*>(version.data()), version.size()};
}
/// None: they are no id.
std::optional<RecordId> to_id(std::string_view bytes) noexcept;

class Names {
 public:
  explicit Names(const std::string& prefix);

  struct Place {
    std::string tag;  ///< In braces: what each of its keys begins with.
    unsigned slot = 0;
  };
  const Place& bucket(std::size_t number) const noexcept { return buckets_[number]; }
  const Place& of(const RecordId& id) const noexcept { return buckets_[bucket_of(id)]; }
  const Place& identity() const noexcept { return identity_; }

 private:
  std::array<Place, bucket_count> buckets_;
  Place identity_;
};

/// In which of its bucket's sets a record lies, and at what place there: one for each.
struct Listing {
  std::string_view set;
  std::string place;
};
inline constexpr std::string_view sweep_set = "due:sweep";
inline constexpr std::string_view reap_set = "due:reap";
inline constexpr std::string_view unknown_set = "unknown";
inline constexpr std::string_view pending_set = "pending";
Listing listing_of(const Record& record);

/// Of the bucket's counters.
std::string counter_of(State state);
std::string counter_of_operation(std::string_view operation);
std::string counter_of_generation(std::uint64_t generation);
/// Of what scopes have of their quotas; in a hash of their own, since there may be many scopes.
inline constexpr std::string_view usage_hash = "usage";
std::string counter_of_active(std::string_view scope);
std::string counter_of_bytes(std::string_view scope);

}  // namespace idem::redis
