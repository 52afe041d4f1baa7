#include "http/admission.hpp"

#include "loop/asio.hpp"

#include <idem/assert.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace idem::http {

Admission::Place::~Place() {
  if (owner_) owner_->leave(client_);
}

Admission::Place::Client Admission::client_of(const asio::ip::address& address) {
  const bool mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  Place::Client client{};
  if (address.is_v4() || mapped) {
    const auto v4 =
        mapped ? asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()) : address.to_v4();
    const auto bytes = v4.to_bytes();
    // Where no /64 of IPv6 can be: the second half is zero there.
    std::copy(bytes.begin(), bytes.end(), client.end() - 4);
    client[11] = 1;
    return client;
  }
  const auto bytes = address.to_v6().to_bytes();
  std::copy_n(bytes.begin(), 8, client.begin());
  return client;
}

std::optional<Admission::Place> Admission::admit(const asio::ip::address& address) {
  const auto client = client_of(address);
  bool all_taken = false;
  {
    const std::lock_guard lock(mutex_);
    all_taken = open_ >= options_.connections_max;
    const auto found = by_client_.find(client);
    const std::size_t its = found == by_client_.end() ? 0 : found->second;
    const bool many = any_contains(proxies_, peer_address_of(address));
    if (!all_taken && (many || its < options_.per_address_max)) {
      ++by_client_[client];
      ++open_;
      return Place(shared_from_this(), client);
    }
  }
  note_refusal(address, all_taken);
  return std::nullopt;
}

void Admission::use_proxies(std::vector<Network> proxies) {
  const std::lock_guard lock(mutex_);
  proxies_ = std::move(proxies);
}

void Admission::leave(const Place::Client& client) {
  const std::lock_guard lock(mutex_);
  const auto found = by_client_.find(client);
  IDEM_ASSERT(found != by_client_.end() && open_ > 0);
  if (--found->second == 0) by_client_.erase(found);
  --open_;
}

std::size_t Admission::open() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

std::uint64_t Admission::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_in_all_;
}

// A flood of connections must not become a flood of lines.
void Admission::note_refusal(const asio::ip::address& address, bool all_taken) {
  std::size_t refused = 0;
  {
    const std::lock_guard lock(mutex_);
    ++refused_;
    ++refused_in_all_;
    const MonotonicTime now = MonotonicClock::now();
    if (logged_at_ && now - *logged_at_ < limits::refusal_log_interval) return;
    logged_at_ = now;
    refused = std::exchange(refused_, 0);
  }
  if (!options_.log) return;
  options_.log(LogLevel::warning, "connections_refused",
               {{"limit", all_taken ? "connections" : "connections_per_address"},
                {"last_address", address.to_string()},
                {"count", refused}});
}

}  // namespace idem::http
