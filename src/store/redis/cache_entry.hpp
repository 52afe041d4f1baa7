#pragma once

#include "core/bytes/digests.hpp"

#include <idem/store.hpp>

#include <optional>
#include <string>
#include <string_view>

/// What a cache may say of a record that another store decides about (protocol.md §20): "completed,
/// and this is the answer", "somebody is at it until then", or "ask". Never that a key is free.
namespace idem::redis {

struct CacheEntry {
  /// Of one attempt the higher replaces the lower, and never the other way round.
  enum class Kind : std::uint8_t { in_flight = 1, ask = 2, completed = 3 };
  Kind kind = Kind::ask;
  Fence fence = 0;
  std::uint64_t generation = 0;
  Fingerprint fingerprint{};
  /// By the deciding store's clock: the end of the lease, or the answer's expiry.
  StoreTime until{};
  /// Of in_flight: how long it may be believed, which is well before that.
  StoreTime believed_until{};
  Digest token{};  ///< Of in_flight, a digest of the attempt's: its owner is answered by the store.
  StoreTime completed_at{};
  std::optional<StoredResponse> response{};  ///< Of completed.
};

/// Entries are bound to the store whose secret this is, to the record's name, and to themselves:
/// what anybody else wrote, or moved, or damaged, is none. One thread.
class CacheCodec {
 public:
  explicit CacheCodec(const Secret& secret) : secret_(secret) {}

  /// A name for the store, which goes into the keys: entries of two stores never meet.
  std::string store_tag();
  Digest token_digest(const Token& token);

  std::string encode(const RecordId& id, const CacheEntry& entry);
  /// None: it is no entry of this record and this store. Total.
  std::optional<CacheEntry> decode(const RecordId& id, std::string_view bytes);

 private:
  Digest mac(const RecordId& id, std::string_view bytes);

  Secret secret_;
  KeyedDigest mac_{"idem cache entry"};
  KeyedDigest tag_{"idem cache store"};
  KeyedDigest token_{"idem cache token"};
};

}  // namespace idem::redis
