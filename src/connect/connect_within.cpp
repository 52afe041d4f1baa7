#include "connect/connect_within.hpp"

#include "connect/connect_limits.hpp"

#include <poll.h>

#include <algorithm>
#include <system_error>

namespace idem {

std::expected<ConnectedPeer, ConnectTrouble> connect_within(const Peers& peers,
                                                            MonotonicTime deadline,
                                                            const std::atomic<bool>* is_abandoned) {
  ConnectRace race(in_order_of_tries(peers));
  for (;;) {
    const MonotonicTime now = MonotonicClock::now();
    switch (race.advance(now)) {
      case ConnectRace::State::connected:
        return ConnectedPeer{race.take_socket(), race.winner()};
      case ConnectRace::State::failed:
        return std::unexpected(
            ConnectTrouble{false, std::generic_category().message(race.error())});
      case ConnectRace::State::connecting:
        break;
    }
    if (now >= deadline || (is_abandoned != nullptr && is_abandoned->load())) {
      return std::unexpected(ConnectTrouble{true, "no connection in time"});
    }
    const Millis left = std::min(deadline - now, Millis(limits::connect_look_interval));
    pollfd waiting{race.descriptor(), POLLIN, 0};
    ::poll(&waiting, 1, static_cast<int>(left.count()));
  }
}

}  // namespace idem
