#pragma once

#include "core/bytes/digests.hpp"
#include "core/exchange/problem.hpp"
#include "gateway/settings.hpp"
#include "http/server_stream.hpp"

#include <memory>
#include <optional>
#include <unordered_map>

namespace idem::gateway {

/// What a request asks, byte for byte: whatever decides about its record and its fingerprint. Two
/// requests of one name are answered alike by the store for as long as their record is completed,
/// so neither key nor fingerprint need be looked at again. One loop's thread.
class AskedName {
 public:
  /// None where the body is not wholly here yet, or is framed in chunks.
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
/// before it expires, except that an operator may free one with a stored 5xx (§3): so that is never
/// kept. Bounded in bytes; what was not asked for the longest goes first. One loop's thread.
class ReplayCache {
 public:
  struct Kept {
    std::shared_ptr<const Answer> answer;
    RecordId id;
    Millis until;  ///< By uptime(); not after the record's expiry.
  };

  using Asked = MemoryName::Bytes;

  explicit ReplayCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// Valid until the next call; null where there is none that may still be told.
  const Kept* find(const Asked& asked, Millis now);
  /// Nothing happens to a 5xx, and to an answer too large to be kept.
  void put(const Asked& asked, Kept kept);
  void clear() noexcept;

 private:
  struct Hash {
    std::size_t operator()(const Asked& asked) const noexcept;
  };
  using Answers = std::unordered_map<Asked, Kept, Hash>;

  void make_room();

  std::size_t bytes_max_;
  // Each half the room: once the young ones fill theirs, they become the old, and the old go.
  Answers young_;
  Answers old_;
  std::size_t young_bytes_ = 0;
};

}  // namespace idem::gateway
