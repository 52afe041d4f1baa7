#pragma once

#include "loop/loop.hpp"

#include <idem/record.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace idem::gateway {

/// What the observations of all loops share: their places, the memory of their copies, and the
/// order of attempts of one key. Safe from any thread.
class ShadowRoom {
 public:
  ShadowRoom() = default;
  ~ShadowRoom() { close(); }
  ShadowRoom(const ShadowRoom&) = delete;
  ShadowRoom& operator=(const ShadowRoom&) = delete;

  /// False: limits::shadow_observations_max are under way.
  bool take_place() noexcept;
  void give_place() noexcept { places_.fetch_sub(1, std::memory_order_acq_rel); }
  std::size_t under_way() const noexcept { return places_.load(std::memory_order_acquire); }

  /// False: there would be more than limits::shadow_bytes_max.
  bool take_bytes(std::size_t bytes) noexcept;
  void give_bytes(std::size_t bytes) noexcept {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  /// An attempt that the upstream has answered, and whose record does not say so yet. A client may
  /// send its retry now; enforcement would have answered it from the record.
  struct End {
    bool is_written = false;
    std::vector<std::move_only_function<void()>> waiting{};
  };
  using Ends = std::vector<std::shared_ptr<End>>;
  std::shared_ptr<End> begin_end(const RecordId& id);
  /// Those that have begun and are not written.
  Ends ends_of(const RecordId& id) const;
  /// The record says so, or never will.
  void write(const RecordId& id, const std::shared_ptr<End>& end);
  /// Calls `then` once `end` is written, on a thread of any loop; perhaps at once.
  void when_written(const std::shared_ptr<End>& end, std::move_only_function<void()> then);

  /// Drops what still waits. After the loops have stopped, and before they go.
  void close();

 private:
  std::atomic<std::size_t> places_{0};
  std::atomic<std::size_t> bytes_{0};
  mutable std::mutex mutex_;
  std::map<RecordId, Ends> ends_;
};

struct AwaitEnd {
  Loop& loop;
  ShadowRoom& room;
  const std::shared_ptr<ShadowRoom::End>& end;
  void operator()(Resumption<bool> written) const {
    written.put(true);
    room.when_written(end, [&to = loop, written = std::move(written)]() mutable {
      to.post([written = std::move(written)]() mutable { written.go_on(); });
    });
  }
};

/// `co_await` of it, named, resumes the calling coroutine on its loop once `end` is written.
inline Wait<bool, AwaitEnd> await_end(Loop& loop, ShadowRoom& room,
                                      const std::shared_ptr<ShadowRoom::End>& end) {
  return suspend<bool>(AwaitEnd{loop, room, end});
}

}  // namespace idem::gateway
