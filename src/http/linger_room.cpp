#include "http/linger_room.hpp"

#include <idem/assert.hpp>

#include <algorithm>

namespace idem::http {
namespace {

LingerRoom::Client client_of(const PeerAddress& address) {
  LingerRoom::Client client{};
  client[0] = address.v4 ? 4 : 6;
  std::copy_n(address.bytes.begin(), address.v4 ? 4 : 8, client.begin() + 1);
  return client;
}

}  // namespace

LingerRoom::Place::~Place() {
  if (owner_) owner_->leave(client_);
}

std::optional<LingerRoom::Place> LingerRoom::take(const PeerAddress& address) {
  const Client client = client_of(address);
  const std::lock_guard lock(mutex_);
  const auto found = by_client_.find(client);
  const std::size_t its = found == by_client_.end() ? 0 : found->second;
  if (taken_ >= all_max_ || its >= per_address_max_) return std::nullopt;
  ++by_client_[client];
  ++taken_;
  return Place(shared_from_this(), client);
}

void LingerRoom::leave(const Client& client) {
  const std::lock_guard lock(mutex_);
  const auto found = by_client_.find(client);
  IDEM_ASSERT(found != by_client_.end() && taken_ > 0);
  if (--found->second == 0) by_client_.erase(found);
  --taken_;
}

}  // namespace idem::http
