#pragma once

#include "core/bytes/digests.hpp"

#include <idem/store.hpp>

#include <optional>
#include <string>
#include <string_view>

/// A cache's entry about a record that another store decides (protocol.md §20): "completed, with
/// this answer", "in flight until then", or "ask the store". It never says that a key is free.
namespace idem::redis {

struct CacheEntry {
  /// Of one attempt a higher kind replaces a lower one, never the other way round.
  enum class Kind : std::uint8_t { in_flight = 1, ask = 2, completed = 3 };
  Kind kind = Kind::ask;
  Fence fence = 0;
  std::uint64_t generation = 0;
  Fingerprint fingerprint{};
  /// By the deciding store's clock: the end of the lease, or the answer's expiry.
  StoreTime until{};
  /// Of in_flight: the cache answers from it until then, well before `until`.
  StoreTime believed_until{};
  Digest token{};  ///< Of in_flight, of the attempt's token: its owner must ask the store.
  StoreTime completed_at{};
  std::optional<StoredResponse> response{};  ///< Of completed.
};

/// A MAC binds an entry to the store's secret, the record's id and its own bytes: decode() refuses
/// an entry that another writer made, moved or damaged. One thread.
class CacheCodec {
 public:
  explicit CacheCodec(const Secret& secret) : secret_(secret) {}

  /// A name for the store, part of the keys, so that entries of two stores never mix.
  std::string store_tag();
  Digest token_digest(const Token& token);

  std::string encode(const RecordId& id, const CacheEntry& entry);
  /// None: the bytes are no entry of this record and this store. Total.
  std::optional<CacheEntry> decode(const RecordId& id, std::string_view bytes);

 private:
  Digest mac(const RecordId& id, std::string_view bytes);

  Secret secret_;
  KeyedDigest mac_{"idem cache entry"};
  KeyedDigest tag_{"idem cache store"};
  KeyedDigest token_{"idem cache token"};
};

}  // namespace idem::redis
