#pragma once

#include "store/record_rows.hpp"

#include <array>
#include <string>
#include <string_view>

/// Where records lie in Redis: strings of bytes (store/record_rows.hpp), under keys that begin with
/// their bucket.
namespace idem::redis {

using Version = RowVersion;
using Versions = RowVersions;

/// The first byte of a record's id chooses its bucket, so the buckets in order hold the records in
/// order. A bucket's keys share a hash tag: a cluster keeps them in one slot, so that a script may
/// write to all of them at once.
inline constexpr std::size_t bucket_count = 256;
inline std::size_t bucket_of(const RecordId& id) noexcept { return id.bytes[0]; }

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
