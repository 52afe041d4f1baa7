#pragma once

#include "core/exchange/exchange.hpp"
#include "gateway/scope_shares.hpp"
#include "http/server_stream.hpp"

#include <idem/store.hpp>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace idem::gateway {

class Waiter;

/// Waiters and look-ups need only know whether there is a stored request; the bytes, up to a
/// megabyte, are not kept for each of them.
inline void drop_request(Record& record) {
  if (record.stored_request) record.stored_request.emplace();
}

/// All requests of the process that wait for a record. When the store reports a change, it reads
/// the record once for all its waiters, and gives the one copy to each on its own loop. Safe from
/// any thread; must be owned by a shared_ptr.
class Waiters final : public Watcher, public std::enable_shared_from_this<Waiters> {
 public:
  /// `store` must outlive the last Waiter. `places`: how many may wait in all; a scope may have its
  /// share of them.
  Waiters(Store& store, std::size_t places) : store_(store), places_(places), shares_(places) {}

  void changed(const RecordId& id) noexcept override;
  std::vector<RecordId> awaited() override;
  /// How many wait now.
  std::size_t waiting() const noexcept { return taken_.load(); }

 private:
  friend class Waiter;

  /// One waiter; the loops and the store's thread share it.
  struct Seat {
    Loop* loop;
    Waiter* waiter;      ///< The loop's thread only; null once it has left.
    std::size_t at = 0;  ///< In its group.
  };
  using Seats = std::vector<std::shared_ptr<Seat>>;
  /// The result of a read. Portions of two deliveries may overtake each other, the reads of a group
  /// do not.
  struct News {
    std::uint64_t read = 0;
    Woken woken;
  };
  struct Group {
    Seats seats;
    Seats newcomers;  ///< No read was asked for them yet; some may have left.
    bool changed = false;
    bool reading = false;
    Seats readers;  ///< While reading: the waiters that were there when the read was asked.
    std::uint64_t reads = 0;
  };
  struct HashId {
    std::size_t operator()(const RecordId& id) const noexcept {
      std::size_t hash = 0;  // An id is a keyed digest: any part of it is as good as random.
      std::memcpy(&hash, id.bytes.data(), sizeof hash);
      return hash;
    }
  };

  /// Takes a place and has the record read. Null: there is none.
  std::shared_ptr<Seat> enter(const RecordId& id, Waiter& waiter, Loop& loop);
  void leave(const Waiter& waiter, Seat& seat);

  /// True when a read is to be asked now: for all after a change, for newcomers otherwise, and
  /// never two at a time.
  static bool plan_read(Group& group);
  void read(const RecordId& id);
  void on_read(const RecordId& id, std::expected<std::optional<Record>, StoreError> result);
  static void deliver(Loop& loop, Seats seats, const News& news);

  Store& store_;
  const std::size_t places_;
  std::atomic<std::size_t> taken_{0};  ///< Changed under the mutex; lets changed() return at once.

  std::mutex mutex_;
  ScopeShares shares_;
  std::unordered_map<RecordId, Group, HashId> groups_;
};

/// One request's place among them, held for as long as this lives. On `client`'s loop only.
class Waiter final : Timed {
 public:
  /// `scope`: whose share of the places it is; empty where there is only one scope.
  Waiter(std::shared_ptr<Waiters> waiters, http::ServerStream& client, const RecordId& id,
         std::string scope);
  ~Waiter() override;

  /// Waits for a change of the record (Woken), or until `until`, the client's leaving or the
  /// gateway's stopping (WaitOver). WaitOver at once where there was no place.
  Task<ExchangeEvent> wait(MonotonicTime until);

 private:
  friend class Waiters;
  void wake(const Waiters::News& news);
  void tick(MonotonicTime now) override;

  std::shared_ptr<Waiters> waiters_;
  http::ServerStream& client_;
  RecordId id_;
  const std::string scope_;
  MonotonicTime until_ = MonotonicTime::max();
  std::optional<Woken> news_;  ///< The latest: it replaces earlier ones.
  std::uint64_t newest_read_ = 0;
  std::shared_ptr<Waiters::Seat> seat_;
};

}  // namespace idem::gateway
