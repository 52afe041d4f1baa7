#include "world.hpp"

namespace provider {

Task wait_in(Hold& hold) {
  ++hold.waiting;
  hold.changed.cancel();
  const auto releases = hold.releases;
  while (hold.releases == releases) co_await hold.changed.async_wait(token);
}

Task pause(std::chrono::milliseconds time, Executor executor) {
  if (time.count() == 0) co_return;
  Timer timer(executor, time);
  co_await timer.async_wait(token);
}

}  // namespace provider
