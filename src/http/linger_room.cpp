#include "http/linger_room.hpp"

#include <idem/assert.hpp>

namespace idem::http {
namespace {

/// All requests behind trusted proxies whose scope is not known.
constexpr std::string_view unknown_client = "?";

/// An IPv4 address, or the first 64 bits of an IPv6 address: what a network gives one client.
std::string name_of(const PeerAddress& address) {
  std::string name(address.v4 ? "4" : "6");
  name.append(reinterpret_cast<const char*>(address.bytes.data()), address.v4 ? 4 : 8);
  return name;
}

}  // namespace

LingerRoom::Place::~Place() {
  if (owner_) owner_->leave(*held_);
}

void LingerRoom::use_proxies(std::vector<Network> proxies) {
  const std::lock_guard lock(mutex_);
  proxies_ = std::move(proxies);
}

std::string LingerRoom::client_of(const PeerAddress& address, std::string_view scope) const {
  if (!any_contains(proxies_, address)) return name_of(address);
  if (scope.empty()) return std::string(unknown_client);
  return "s" + std::string(scope);
}

std::optional<LingerRoom::Place> LingerRoom::take(const PeerAddress& address,
                                                  std::string_view scope) {
  const std::lock_guard lock(mutex_);
  const std::string client = client_of(address, scope);
  const auto found = by_client_.find(client);
  const std::size_t its = found == by_client_.end() ? 0 : found->second.size();
  if (client != unknown_client && its >= per_client_max_) return std::nullopt;
  if (taken_ >= all_max_) end_one();
  auto& places = by_client_[client];
  places.push_back(std::make_shared<Held>(client, next_number_++));
  places.back()->at = std::prev(places.end());
  ++taken_;
  return Place(shared_from_this(), places.back());
}

// The connection that has held on the longest among those of the greediest client: it had the most
// of what there is to give. The newcomer would get nothing.
void LingerRoom::end_one() {
  auto most = by_client_.begin();
  IDEM_ASSERT(most != by_client_.end());
  for (auto one = std::next(most); one != by_client_.end(); ++one) {
    const std::size_t has = one->second.size();
    const bool older = one->second.front()->number < most->second.front()->number;
    if (has > most->second.size() || (has == most->second.size() && older)) most = one;
  }
  const std::shared_ptr<Held> ended = most->second.front();
  forget(*ended);
  ended->ended.store(true);
}

void LingerRoom::forget(Held& held) {
  const auto found = by_client_.find(held.client);
  IDEM_ASSERT(found != by_client_.end() && taken_ > 0);
  found->second.erase(held.at);
  if (found->second.empty()) by_client_.erase(found);
  --taken_;
}

void LingerRoom::leave(Held& held) {
  const std::lock_guard lock(mutex_);
  if (!held.ended.load()) forget(held);
}

}  // namespace idem::http
