#include "gateway/keyed/heartbeat.hpp"

namespace idem::gateway {

void Heartbeat::tick(MonotonicTime now) {
  const auto due = exchange_->heartbeat(now);
  if (!due) return;
  ask(store_, *due, [to = &loop_, weak = std::weak_ptr(exchange_), now](auto result) {
    to->post([weak, now, result = std::move(result)] {
      if (const auto exchange = weak.lock()) exchange->renewed(result, now);
    });
  });
}

}  // namespace idem::gateway
