#pragma once

#include "store/redis/cache_entry.hpp"
#include "store/redis/rows.hpp"
#include "store/redis/servers.hpp"

#include <idem/store.hpp>

#include <functional>
#include <unordered_map>
#include <unordered_set>

/// A cache in Redis of another store's decisions (protocol.md §20). The invariants, each with a
/// test:
///  1. The cache writes an entry only after the store's answer, which comes after its commit.
///  2. An entry says "completed: this answer" or "in flight until". Without an entry that the cache
///     may use, it asks the store.
///  3. It uses "in flight" for limits::cache_in_flight_max at most, and never up to the end of the
///     lease.
///  4. It uses "completed" only before its expiry, by an estimate of the store's own clock, and not
///     at all without one.
///  5. It never keeps a stored 5xx, or an answer without its body.
///  6. An entry of an older attempt never replaces one of a newer attempt. After the end of an
///     attempt its "in flight" does not come back.
///  7. It ignores an entry of another store, another record or another generation, and one that was
///     changed.
///  8. A write without a reply within `reply_max` counts as not done. If the cache has "in flight"
///     of an attempt, its end is written as "ask the store" again and again until Redis accepts it.
/// Loop's thread only.
namespace idem::redis {

class Cache {
 public:
  /// `clock`: a test's, in place of the estimate; or empty. `report`: called when the cache becomes
  /// unusable, and when it is usable again.
  Cache(Loop& loop, Url url, const Secret& store_secret, std::function<StoreTime()> clock,
        Millis reply_max, std::function<void(const std::string&)> report);

  /// The answer from the cache; none: the store must be asked.
  Task<std::optional<ReserveOutcome>> look(const Reserve& verb);

  /// The reply to a reserve was lost. If the reserve is repeated and granted, the beginning of its
  /// lease is unknown.
  void note_doubt(const RecordId& id);
  /// The moment of a question to the store: by the store's clock (or a little earlier), and by
  /// ours.
  struct Asked {
    std::optional<StoreTime> store;
    MonotonicTime at{};
  };
  Asked asked_now() const { return {store_now(), MonotonicClock::now()}; }
  /// Notes the store's answer to a reserve.
  void note_reserve(const Reserve& verb, const ReserveOutcome& outcome, const Asked& asked);
  /// Notes the store's answer to an owner's verb. `response`: of a complete; none: another verb.
  void note_owner(const RecordId& id, const AttemptRef& attempt, const OwnerReply& reply,
                  std::optional<StoredResponse> response, MonotonicTime asked);

  /// None: the estimate of the store's clock is missing or too old.
  std::optional<StoreTime> store_now() const;

  void close();
  std::size_t busy() const noexcept { return busy_; }

 private:
  /// An attempt that runs in this process.
  struct Kept {
    Fence fence = 0;
    std::optional<Fingerprint> fingerprint{};  ///< None: the store may have kept another one.
    std::uint64_t generation = 0;
    Millis retention{};
    bool is_cached = false;  ///< Redis may have "in flight" of it.
  };

  /// False: there is no connection; one is being made.
  bool is_reached(unsigned slot);
  Task<void> connect(unsigned slot);
  std::optional<ReserveOutcome> believed(const Reserve& verb, CacheEntry entry);
  bool put(const RecordId& id, const CacheEntry& entry, Millis length);
  Task<void> put_there(unsigned slot, std::string command);
  /// Writes the end of an attempt of which Redis may have "in flight". If that fails, it writes
  /// "ask the store" until Redis accepts it or the entry "in flight" is over.
  void put_end(const RecordId& id, const CacheEntry& entry, Millis length);
  Task<void> put_until_accepted(unsigned slot, std::string command, std::string otherwise);
  Task<CommandResult> put_once(unsigned slot, std::string command);
  std::string command_of(const std::string& key, const std::string& encoded, Millis length) const;
  /// False: the reply took so long that it says nothing about now.
  bool update_store_clock(StoreTime now, MonotonicTime asked);
  std::string key_of(const RecordId& id) const;
  void say(const std::string& what);

  Loop& loop_;
  Servers servers_;
  CacheCodec codec_;
  std::string prefix_;
  std::function<StoreTime()> clock_;
  std::function<void(const std::string&)> report_;
  ServerClock store_clock_;
  MonotonicTime store_clock_at_{};
  std::unordered_map<RecordId, Kept, IdHash> running_;
  std::unordered_set<RecordId, IdHash> doubted_;
  bool is_connecting_ = false;
  bool is_out_ = false;
  bool is_closed_ = false;
  std::size_t busy_ = 0;
};

}  // namespace idem::redis
