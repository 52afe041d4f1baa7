#pragma once

#include <idem/limits.hpp>
#include <idem/record.hpp>

#include <algorithm>
#include <random>

/// Pauses between tries to reach a server.
namespace idem::sql_server {

/// From half of `length` to all of it, so that nodes do not come back at the same time.
inline Millis with_jitter(Millis length) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return length / 2 + Millis(random() % static_cast<unsigned>(length.count() / 2 + 1));
}

/// The pause after one of `before`; 0: the first.
inline Millis next_backoff(Millis before) {
  return std::clamp<Millis>(before * 2, limits::store_reconnect_min, limits::store_reconnect_max);
}

}  // namespace idem::sql_server
