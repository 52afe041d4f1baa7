#pragma once

#include "core/exchange/exchange.hpp"
#include "loop/loop.hpp"

#include <memory>

namespace idem::gateway {

/// Renews the lease of a running exchange, from the loop's tick, for as long as it lives.
class Heartbeat final : Timed {
 public:
  Heartbeat(Loop& loop, Store& store, std::shared_ptr<Exchange> exchange)
      : Timed(loop), store_(store), exchange_(std::move(exchange)) {}

 private:
  void tick(MonotonicTime now) override;

  Store& store_;
  std::shared_ptr<Exchange> exchange_;
};

}  // namespace idem::gateway
