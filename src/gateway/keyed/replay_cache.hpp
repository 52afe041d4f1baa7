#pragma once

#include "core/bytes/digests.hpp"
#include "core/exchange/problem.hpp"
#include "gateway/settings.hpp"
#include "http/server_stream.hpp"

#include <memory>
#include <optional>
#include <unordered_map>

namespace idem::gateway {

/// A name for a request: all bytes that decide about its record and its fingerprint. The store
/// answers two requests of one name alike for as long as their record is completed, so their key
/// and fingerprint need not be read again. One loop's thread.
class RequestName {
 public:
  /// None where the body has not come completely yet, or is framed in chunks.
  std::optional<MemoryName::Bytes> of(const http::ServerStream& client,
                                      const GatewaySettings& settings, const Route& route,
                                      std::string_view scope);
  /// Under other settings the same bytes are another request.
  void settings_changed() noexcept { ++epoch_; }

 private:
  MemoryName name_;
  std::uint64_t epoch_ = 0;
};

/// Stored answers that were replayed lately, as they go out. A completed record does not change
/// before it expires, except that an operator may free one with a stored 5xx (§3): so a 5xx is
/// never kept. Bounded in bytes; the least recently used go first. One loop's thread.
class ReplayCache {
 public:
  struct Kept {
    std::shared_ptr<const WireAnswer> answer;
    RecordId id;
    Millis until;  ///< By uptime(); not after the record's expiry.
  };

  using Name = MemoryName::Bytes;

  explicit ReplayCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// Valid until the next call; null where there is none that has not expired.
  const Kept* find(const Name& name, Millis now);
  /// Does nothing with a 5xx, or an answer that is too large to be kept.
  void put(const Name& name, Kept kept);
  void clear() noexcept;

 private:
  struct Hash {
    std::size_t operator()(const Name& name) const noexcept;
  };
  using Answers = std::unordered_map<Name, Kept, Hash>;

  void make_room();

  std::size_t bytes_max_;
  // Each has half the room: once the young ones fill theirs, they become the old, and the old go.
  Answers young_;
  Answers old_;
  std::size_t young_bytes_ = 0;
};

}  // namespace idem::gateway
