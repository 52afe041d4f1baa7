#include "store/mysql/server_in_use.hpp"

#include <utility>

namespace idem::mysql {

std::string why_lost(const KnownAttempt& known) {
  return "the server does not have the attempt with the fence " + std::to_string(known.fence) +
         ", which was confirmed before: it has lost the last records, so that work could run "
         "again; find out what is missing before you start the gateway again";
}

ServerInUse::Now ServerInUse::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

std::uint64_t ServerInUse::turn() const {
  const std::lock_guard lock(mutex_);
  return now_.turn;
}

bool ServerInUse::go_to(std::size_t host, const Now& seen) {
  const std::lock_guard lock(mutex_);
  const auto fence_in = [](const Now& one) { return one.known ? one.known->fence : Fence(0); };
  const bool is_other = host != now_.host;
  if (is_other && (now_.turn != seen.turn || fence_in(now_) > fence_in(seen))) return false;
  if (host != now_.host || now_.is_left) ++now_.turn;
  now_.host = host;
  now_.is_left = false;
  return true;
}

void ServerInUse::leave(std::uint64_t turn, std::size_t hosts) {
  const std::lock_guard lock(mutex_);
  if (turn != now_.turn) return;  // Another connection of that server has said so already.
  now_.host = (now_.host + 1) % hosts;
  now_.is_left = true;
  ++now_.turn;
}

void ServerInUse::note(const RecordId& id, Fence fence) {
  const std::lock_guard lock(mutex_);
  if (!now_.known || fence > now_.known->fence) now_.known = KnownAttempt{id, fence};
}

void ServerInUse::doubt() {
  const std::lock_guard lock(mutex_);
  is_in_doubt_ = true;
}

bool ServerInUse::take_doubt() {
  const std::lock_guard lock(mutex_);
  return std::exchange(is_in_doubt_, false);
}

bool ServerInUse::is_in_doubt() const {
  const std::lock_guard lock(mutex_);
  return is_in_doubt_;
}

}  // namespace idem::mysql
