#pragma once

#include "loop/loop.hpp"

#include <idem/record.hpp>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace idem::gateway {

/// Turns of one kind that requests of a key take, on any loop, and others wait for. Safe from any
/// thread.
class Turns {
 public:
  struct Turn {
    bool is_over = false;
    std::vector<std::move_only_function<void()>> waiting{};
  };
  using Taken = std::vector<std::shared_ptr<Turn>>;

  Turns() = default;
  ~Turns() { close(); }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// Null: limits::shadow_turns_max are taken for this key.
  std::shared_ptr<Turn> take(const RecordId& id);
  /// Those that are taken now and not over.
  Taken taken(const RecordId& id) const;
  bool is_over(const Turn& turn) const;
  void end(const RecordId& id, const std::shared_ptr<Turn>& turn);
  /// Calls `then` once `turn` is over, on any loop's thread; perhaps at once.
  void when_over(const std::shared_ptr<Turn>& turn, std::move_only_function<void()> then);

  /// Drops what still waits. After the loops have stopped, and before they go.
  void close();

 private:
  mutable std::mutex mutex_;
  std::map<RecordId, Taken> taken_;
};

struct AwaitTurn {
  Loop& loop;
  Turns& turns;
  const std::shared_ptr<Turns::Turn>& turn;
  void operator()(Resumption<bool> over) const {
    over.put(true);
    turns.when_over(turn, [&to = loop, over = std::move(over)]() mutable {
      to.post([over = std::move(over)]() mutable { over.go_on(); });
    });
  }
};

/// `co_await` of it, named, resumes the calling coroutine on its loop once `turn` is over.
inline Wait<bool, AwaitTurn> await_turn(Loop& loop, Turns& turns,
                                        const std::shared_ptr<Turns::Turn>& turn) {
  return suspend<bool>(AwaitTurn{loop, turns, turn});
}

}  // namespace idem::gateway
