#pragma once

#include "store/redis/cache_entry.hpp"
#include "store/redis/servers.hpp"

#include <idem/store.hpp>

#include <functional>
#include <unordered_map>
#include <unordered_set>

/// A cache in Redis of what another store decided (protocol.md §20). The invariants, each with a
/// test:
///  1. An entry is written only after the store's answer, which is after its commit.
///  2. It says "completed: this answer" or "in flight until"; what is not there, not believed or
///  not
///     understood, the store is asked.
///  3. "In flight" is not believed for longer than limits::cache_in_flight_max, nor up to the end
///     of the lease.
///  4. "Completed" is not believed up to its expiry, by an estimate of the store's own clock;
///  without
///     one, not at all.
///  5. A stored 5xx is never kept, nor an answer without its body.
///  6. An entry of an older attempt replaces none of a newer one; of one attempt, "in flight" does
///     not come back once it has ended.
///  7. An entry of another store, another record or another generation is none, and so is one that
///     anybody changed.
///  8. Whatever the cache does not do in `reply_max`, it has not done. Of an attempt that it was
///     told of it is told the end again until then, as something to ask the store about.
/// Loop's thread only.
namespace idem::redis {

class Cache {
 public:
  /// `clock`: a test's, in place of the estimate; or empty. `report`: told when the cache cannot be
  /// used any more, and when it can again.
  Cache(Loop& loop, Url url, const Secret& store_secret, std::function<StoreTime()> clock,
        Millis reply_max, std::function<void(const std::string&)> report);

  /// What may be answered without asking the store.
  Task<std::optional<ReserveOutcome>> look(const Reserve& verb);

  /// A reserve may have been done without anybody hearing of it: its lease, should it be told
  /// again, began at nobody knows when.
  void note_doubt(const RecordId& id);
  /// When the store was asked, by its clock, or before that, and by ours.
  struct Asked {
    std::optional<StoreTime> store;
    MonotonicTime at{};
  };
  Asked asked_now() const { return {store_now(), MonotonicClock::now()}; }
  /// The store has answered so.
  void note_reserve(const Reserve& verb, const ReserveOutcome& outcome, const Asked& asked);
  /// `response`: what it completed with; none: it ended, or went on, in another way.
  void note_owner(const RecordId& id, const Attempt& attempt, const OwnerReply& reply,
                  std::optional<StoredResponse> response, MonotonicTime asked);

  /// None: the store's clock is not known well enough.
  std::optional<StoreTime> store_now() const;

  void close();
  std::size_t busy() const noexcept { return busy_; }

 private:
  /// Of an attempt that runs here.
  struct Kept {
    Fence fence = 0;
    std::optional<Fingerprint> fingerprint{};  ///< None: the store may keep another than was asked.
    std::uint64_t generation = 0;
    Millis retention{};
    bool is_told = false;  ///< The cache was told that it is in flight.
  };
  struct Hash {
    std::size_t operator()(const RecordId& id) const noexcept;
  };

  /// False: it is not, and is being tried by then.
  bool is_reached(unsigned slot);
  Task<void> connect(unsigned slot);
  std::optional<ReserveOutcome> believed(const Reserve& verb, CacheEntry entry);
  bool put(const RecordId& id, const CacheEntry& entry, Millis length);
  Task<void> put_there(unsigned slot, std::string command);
  /// An end that the cache must hear of, since it was told of the attempt: where it has not taken
  /// it, it is told to ask the store, for as long as anybody may believe the other.
  void put_end(const RecordId& id, const CacheEntry& entry, Millis length);
  Task<void> put_until_taken(unsigned slot, std::string command, std::string otherwise);
  Task<CommandResult> put_once(unsigned slot, std::string command);
  std::string command_of(const std::string& key, const std::string& encoded, Millis length) const;
  /// False: the reply took so long that it tells nothing of now.
  bool heard_of_store(StoreTime now, MonotonicTime asked);
  std::string key_of(const RecordId& id) const;
  void say(const std::string& what);

  Loop& loop_;
  Servers servers_;
  CacheCodec codec_;
  std::string prefix_;
  std::function<StoreTime()> clock_;
  std::function<void(const std::string&)> report_;
  ServerClock store_clock_;
  MonotonicTime store_heard_{};
  std::unordered_map<RecordId, Kept, Hash> running_;
  std::unordered_set<RecordId, Hash> doubted_;
  bool is_connecting_ = false;
  bool is_out_ = false;
  bool is_closed_ = false;
  std::size_t busy_ = 0;
};

}  // namespace idem::redis
