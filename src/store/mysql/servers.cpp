#include "store/mysql/servers.hpp"

#include "store/mysql/failures.hpp"
#include "store/sql_server/backoff.hpp"

#include <idem/limits.hpp>

namespace idem::mysql {

bool Servers::is_ready(const Link& link) const noexcept {
  return link.connection.is_open() && link.turn == in_use_->turn() && link.compared == doubts_;
}

Task<std::expected<Opened, std::string>> Servers::open(Link& link, IdentitySettings settings,
                                                       MysqlOptions options) {
  std::string why;
  for (std::size_t host = 0; host < url_.hosts.size(); ++host) {
    auto connecting = link.connection.open(url_.hosts[host], limits::store_connect_max);
    const auto connected = co_await std::move(connecting);
    if (!connected) {
      why = connected.error();
      continue;
    }
    auto opening = open_database(link.connection, settings, options);
    auto opened = co_await std::move(opening);
    if (opened) {
      store_id_ = opened->store_id;
      link.server = opened->server;
      (void)in_use_->go_to(host, in_use_->now());
      link.turn = in_use_->turn();
      link.compared = doubts_;
      co_return std::move(*opened);
    }
    link.connection.close();
    why = std::move(opened.error().why);
    // Another server could begin a new store, where every key would run again.
    if (!opened.error().is_replica) break;
  }
  co_return std::unexpected(std::move(why));
}

// The server in use first: only if it does not answer is another one asked, and then all
// connections go there.
Task<std::expected<void, std::string>> Servers::connect(Link& link) {
  std::expected<void, std::string> connected;
  ServerInUse::Now seen = in_use_->now();
  for (std::size_t tried = 0; tried < url_.hosts.size();) {
    const std::size_t host = (seen.host + tried) % url_.hosts.size();
    ++tried;
    auto connecting = link.connection.open(url_.hosts[host], limits::store_connect_max);
    connected = co_await std::move(connecting);
    if (!connected) continue;
    seen.known = in_use_->now().known;
    auto comparing = compare(link);
    connected = co_await std::move(comparing);
    if (connected && in_use_->go_to(host, seen)) {
      link.turn = in_use_->turn();
      co_return connected;
    }
    link.connection.close();
    if (!connected) continue;
    connected = std::unexpected("meanwhile an attempt was confirmed on the server in use");
    if (in_use_->turn() == seen.turn) continue;
    // Another connection has gone elsewhere meanwhile, and this one follows it.
    seen = in_use_->now();
    tried = 0;
  }
  co_return connected;
}

Task<std::expected<void, std::string>> Servers::compare(Link& link) {
  const std::uint64_t doubts = doubts_;
  auto checking = check_again(link.connection, store_id_, in_use_->now().known);
  const auto checked = co_await std::move(checking);
  if (!checked) co_return std::unexpected(checked.error());
  if (!link.connection.is_open()) co_return std::unexpected("the connection was lost");
  link.server = *checked;
  link.compared = doubts;
  co_return std::expected<void, std::string>();
}

Task<bool> Servers::reach(Link& link) {
  if (is_ready(link)) co_return true;
  if (link.connection.is_open() && link.turn == in_use_->turn()) {
    auto comparing = compare(link);
    const auto compared = co_await std::move(comparing);
    if (compared) co_return true;
  }
  link.connection.close();
  if (out_of_reach_ && MonotonicClock::now() < retry_at_) co_return false;
  auto connecting = connect(link);
  const auto connected = co_await std::move(connecting);
  if (connected) {
    out_of_reach_ = false;
    co_return true;
  }
  link.connection.close();
  backoff_ = sql_server::next_backoff(out_of_reach_ ? backoff_ : Millis(0));
  out_of_reach_ = true;
  why_ = "the store cannot be reached: " + connected.error();
  retry_at_ = MonotonicClock::now() + sql_server::with_jitter(backoff_);
  co_return false;
}

}  // namespace idem::mysql
