#include "core/threads/turn.hpp"

#include <idem/assert.hpp>
#include <idem/store_wait.hpp>

namespace idem {
namespace {

thread_local Turn* turn_of_thread = nullptr;

}  // namespace

Turn::Turn() {
  IDEM_ASSERT(turn_of_thread == nullptr);
  turn_of_thread = this;
}

Turn::~Turn() {
  end();
  turn_of_thread = nullptr;
}

void Turn::end() noexcept {
  waking_.swap(to_wake_);
  for (const auto& one : waking_) one->wake();
  waking_.clear();
}

void Turn::wake_at_end(const std::shared_ptr<Sleeper>& one) {
  Turn* const turn = turn_of_thread;
  if (turn == nullptr) return one->wake();
  turn->to_wake_.push_back(one);
  if (turn->to_wake_.size() == 1) turn->has_begun();
}

Turn* Turn::current() noexcept { return turn_of_thread; }

inline namespace v0_1 {

void about_to_wait() noexcept {
  if (turn_of_thread != nullptr) turn_of_thread->end();
}

}  // namespace v0_1

}  // namespace idem
