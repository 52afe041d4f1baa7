#include "store/redis/servers.hpp"

#include <idem/limits.hpp>

#include <algorithm>
#include <charconv>
#include <set>

namespace idem::redis {
namespace {

constexpr std::uint16_t no_port = 0;

/// Reads the server's address from a redirection; without a host it is that of the asked server.
std::optional<Address> address_of(std::string_view text, const Address& asked) {
  if (text.starts_with(':')) text.remove_prefix(1);
  const auto colon = text.rfind(':');
  std::uint16_t port = no_port;
  const auto digits = colon == text.npos ? text : text.substr(colon + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (port == no_port) return std::nullopt;
  const bool is_whole = colon != text.npos && colon > 0;
  return Address{is_whole ? std::string(text.substr(0, colon)) : asked.host, port};
}

Millis grown(Millis backoff) {
  if (backoff == Millis::zero()) return limits::store_reconnect_min;
  return std::min<Millis>(backoff * 2, limits::store_reconnect_max);
}

}  // namespace

struct Servers::Server {
  Server(Loop& loop, const Address& address, Millis patience)
      : connection(loop, address, patience) {}
  Connection connection;
  bool is_connecting = false;
  std::vector<Resumption<bool>> waiting;
  std::string why;
  MonotonicTime retry_at{};
  Millis backoff{};
};

unsigned slot_of(std::string_view tag) noexcept {
  unsigned crc = 0;
  for (const char c : tag) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000U) != 0 ? (crc << 1) ^ 0x1021U : crc << 1;
    }
    crc &= 0xffffU;
  }
  return crc % cluster_slots;
}

Servers::Servers(Loop& loop, Url url, Millis patience, unsigned lanes)
    : loop_(loop), url_(std::move(url)), patience_(patience), lanes_(lanes) {
  if (url_.layout == Layout::cluster) slots_.assign(cluster_slots, nullptr);
  if (url_.layout == Layout::one) set_master(url_.hosts.front());
}

Servers::~Servers() = default;

Servers::Server& Servers::server(const Address& address, unsigned slot) {
  auto& found = servers_[{address, slot % lanes_}];
  if (!found) found = std::make_unique<Server>(loop_, address, patience_);
  return *found;
}

void Servers::set_master(const Address& address) {
  masters_.clear();
  for (unsigned lane = 0; lane < lanes_; ++lane) masters_.push_back(&server(address, lane));
}

std::vector<Connection*> Servers::owners() const {
  std::set<Server*> found(slots_.begin(), slots_.end());
  found.insert(masters_.begin(), masters_.end());
  found.erase(nullptr);
  std::vector<Connection*> connections;
  for (Server* const one : found) connections.push_back(&one->connection);
  return connections;
}

void Servers::close() {
  is_closed_ = true;
  for (auto& [key, server] : servers_) server->connection.close("the store is closed");
}

Task<std::expected<void, std::string>> Servers::open() {
  Task<Connection*> reaching = of(0);
  Connection* const first = co_await std::move(reaching);
  if (first == nullptr) co_return std::unexpected(why_);
  co_return std::expected<void, std::string>();
}

Connection* Servers::open_at(unsigned slot) const noexcept {
  Server* const has = !slots_.empty()     ? slots_[slot]
                      : !masters_.empty() ? masters_[slot % lanes_]
                                          : nullptr;
  const bool is_open = has != nullptr && has->connection.is_open() && !has->is_connecting;
  return is_open ? &has->connection : nullptr;
}

Task<Connection*> Servers::of(unsigned slot) {
  if (is_closed_) {
    why_ = "the store is closed";
    co_return nullptr;
  }
  if (url_.layout == Layout::cluster) {
    Server* has = slots_[slot];
    if (has == nullptr || !has->connection.is_open()) {
      // The known server may be gone, and another may have the slot now.
      bool reached = false;
      if (has != nullptr) {
        Task<bool> reaching = reach(*has);
        reached = co_await std::move(reaching);
      }
      if (!reached) {
        Task<bool> learning = learn_slots();
        const bool learnt = co_await std::move(learning);
        has = slots_[slot];
        if (!learnt || has == nullptr) co_return nullptr;
      }
    }
    Task<bool> reaching = reach(*has);
    const bool reached = co_await std::move(reaching);
    co_return reached ? &has->connection : nullptr;
  }
  const unsigned lane = slot % lanes_;
  const bool is_known = !masters_.empty() && masters_[lane]->connection.is_open();
  if (url_.layout == Layout::sentinel && !is_known) {
    Task<bool> finding = find_master();
    const bool is_found = co_await std::move(finding);
    // If no sentinel answered, the last known master is asked: its check tells whether it still is.
    if (!is_found && masters_.empty()) co_return nullptr;
  }
  Server& master = *masters_[lane];
  Task<bool> reaching = reach(master);
  const bool reached = co_await std::move(reaching);
  co_return reached ? &master.connection : nullptr;
}

Task<bool> Servers::reach(Server& server) {
  if (server.connection.is_open() && !server.is_connecting) co_return true;
  if (server.is_connecting) {
    const auto start = [&](Resumption<bool> done) { server.waiting.push_back(std::move(done)); };
    auto waiting = suspend<bool>(start);
    co_return co_await waiting;
  }
  if (MonotonicClock::now() < server.retry_at) {
    why_ = server.why;
    co_return false;
  }
  server.is_connecting = true;
  Task<bool> connecting = connect(server);
  const bool connected = co_await std::move(connecting);
  server.is_connecting = false;
  server.backoff = connected ? Millis::zero() : grown(server.backoff);
  server.retry_at = connected ? MonotonicTime() : MonotonicClock::now() + server.backoff;
  if (!connected) why_ = server.why;
  // Posted: the coroutine that made the connection goes on first.
  loop_.post([connected, woken = std::move(server.waiting)]() mutable {
    for (auto& one : woken) one(connected);
  });
  server.waiting.clear();
  co_return connected;
}

Task<bool> Servers::connect(Server& server) {
  Connection& connection = server.connection;
  // With TLS configured, never connects without it.
  if (url_.tls.on && !tls_) {
    auto tls = make_tls_context(url_.tls);
    if (!tls) {
      server.why = std::move(tls.error());
      co_return false;
    }
    tls_ = std::move(*tls);
  }
  const Millis patience = std::min<Millis>(patience_, limits::store_connect_max);
  auto opening = connection.open(tls_, url_.login, url_.database, patience);
  const auto opened = co_await std::move(opening);
  if (!opened) {
    server.why = opened.error();
    co_return false;
  }
  if (!check_) co_return true;
  auto checking = check_(connection);
  auto refusal = co_await std::move(checking);
  if (!refusal) co_return true;
  server.why = std::move(*refusal);
  connection.close(server.why);
  co_return false;
}

// One caller asks for all, and the answer is kept for a moment.
Task<bool> Servers::find_master() {
  if (is_finding_) {
    const auto start = [&](Resumption<bool> done) { finding_.push_back(std::move(done)); };
    auto waiting = suspend<bool>(start);
    co_return co_await waiting;
  }
  if (MonotonicClock::now() < find_again_) co_return !masters_.empty();
  is_finding_ = true;
  Task<std::optional<Address>> asking = ask_sentinels();
  const auto address = co_await std::move(asking);
  is_finding_ = false;
  find_again_ = MonotonicClock::now() + limits::store_reconnect_min;
  if (address) set_master(*address);
  // Posted: the coroutine that asked goes on first.
  loop_.post([is_found = address.has_value(), woken = std::move(finding_)]() mutable {
    for (auto& one : woken) one(is_found);
  });
  finding_.clear();
  co_return address.has_value();
}

Task<std::optional<Address>> Servers::ask_sentinels() {
  const std::string question = command({"SENTINEL", "get-master-addr-by-name", url_.master});
  for (const Address& sentinel : url_.hosts) {
    Connection connection(loop_, sentinel, patience_);
    auto opening = connection.open(tls_, url_.sentinel_login, 0,
                                   std::min<Millis>(patience_, limits::store_connect_max));
    const auto opened = co_await std::move(opening);
    if (!opened) {
      why_ = opened.error();
      continue;
    }
    Task<CommandResult> asking = connection.ask(question);
    const CommandResult reply = co_await std::move(asking);
    connection.close("asked");
    if (!reply) {
      why_ = reply.error().why;
      continue;
    }
    std::uint16_t port = no_port;
    const std::string& digits = reply->at(1).text;
    std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (reply->items.size() == 2 && port != no_port) co_return Address{reply->at(0).text, port};
    why_ = "the sentinel " + sentinel.host + ":" + std::to_string(sentinel.port) +
           " knows no master called " + url_.master;
  }
  co_return std::nullopt;
}

Task<bool> Servers::learn_slots() {
  const MonotonicTime now = MonotonicClock::now();
  if (now < learn_again_) co_return true;  // It was asked a moment ago.
  learn_again_ = now + limits::store_reconnect_min;
  std::vector<Address> asked;
  for (const auto& [key, server] : servers_) {
    if (server->connection.is_open() && key.second == 0) asked.push_back(key.first);
  }
  std::ranges::copy(url_.hosts, std::back_inserter(asked));
  for (const Address& address : asked) {
    Server& one = server(address, 0);
    Task<bool> reaching = reach(one);
    const bool reached = co_await std::move(reaching);
    if (!reached) continue;
    Task<bool> learning = learn_slots_from(one.connection);
    const bool learnt = co_await std::move(learning);
    if (learnt) co_return true;
  }
  co_return false;
}

Task<bool> Servers::learn_slots_from(Connection& connection) {
  Task<CommandResult> asking = connection.ask(command({"CLUSTER", "SLOTS"}));
  const CommandResult reply = co_await std::move(asking);
  if (!reply || reply->kind != Reply::Kind::list) {
    why_ = reply ? error_text(*reply) : reply.error().why;
    co_return false;
  }
  if (reply->items.empty()) {
    why_ = "no node of the cluster has its slots";
    co_return false;
  }
  std::vector<Server*> slots(cluster_slots, nullptr);
  for (const Reply& range : reply->items) {
    const Reply& master = range.at(2);
    const auto from = range.at(0).number;
    const auto to = range.at(1).number;
    const auto port = master.at(1).number;
    if (from < 0 || to >= cluster_slots || from > to || port <= 0 || port > 65'535) continue;
    const std::string& host = master.at(0).text;
    const Address address{host.empty() ? connection.address().host : host,
                          static_cast<std::uint16_t>(port)};
    for (auto slot = static_cast<unsigned>(from); slot <= static_cast<unsigned>(to); ++slot) {
      slots[slot] = &server(address, slot);
    }
  }
  slots_ = std::move(slots);
  why_ = "no node of the cluster has the slot of this record";
  co_return true;
}

bool Servers::learn_moved(const Reply& error, unsigned slot, const Connection& by) {
  const auto space = error.text.rfind(' ');
  if (space == error.text.npos) return false;
  const auto to = address_of(std::string_view(error.text).substr(space + 1), by.address());
  if (to) slots_[slot] = &server(*to, slot);
  return to.has_value();
}

Task<CommandResult> Servers::ask_open(unsigned slot, std::string command) {
  Connection* const connection = open_at(slot);
  if (connection == nullptr) co_return std::unexpected(Lost{"there is no connection", false});
  Task<CommandResult> asking = connection->ask(std::move(command));
  CommandResult answer = co_await std::move(asking);
  if (answer && answer->is_error("READONLY")) connection->close(answer->text);
  if (answer && answer->is_error("MOVED") && !slots_.empty()) {
    (void)learn_moved(*answer, slot, *connection);
  }
  co_return answer;
}

Task<CommandResult> Servers::ask(unsigned slot, std::string command) {
  for (int redirections = 0;; ++redirections) {
    Connection* connection = open_at(slot);
    if (connection == nullptr) {
      Task<Connection*> reaching = of(slot);
      connection = co_await std::move(reaching);
    }
    if (connection == nullptr) co_return std::unexpected(Lost{why_, false});
    Task<CommandResult> asking = connection->ask(command);
    CommandResult answer = co_await std::move(asking);
    if (!answer || url_.layout != Layout::cluster) {
      // A master that became a replica is not the right one any more.
      if (answer && answer->is_error("READONLY")) connection->close(answer->text);
      co_return answer;
    }
    // An ASK is not followed: while a slot moves, two servers have a part of a bucket's keys each,
    // and a script that sees only a part could miss a record. Until the slot has moved, its records
    // are unavailable.
    if (!answer->is_error("MOVED") || redirections == limits::redis_redirections_max) {
      co_return answer;
    }
    if (!learn_moved(*answer, slot, *connection)) co_return answer;
  }
}

}  // namespace idem::redis
