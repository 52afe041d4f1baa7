#include "loop/connecting.hpp"

#include "loop/asio.hpp"
#include "loop/deadline.hpp"
#include "loop/watched_socket.hpp"

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

namespace idem {
namespace {

using asio::ip::tcp;
using boost::system::error_code;

/// A name's look-up with its time limit; the first to end resumes the caller. Shared, because the
/// look-up may outlive the caller.
struct LookUp {
  LookUp(Loop& loop, MonotonicTime deadline)
      : resolver(loop.context()), time_limit(loop.context(), deadline - MonotonicClock::now()) {}

  static void start(const std::shared_ptr<LookUp>& self, const std::string& host,
                    const std::string& port) {
    self->resolver.async_resolve(host, port, [self](const error_code& error, const auto& entries) {
      self->answer.emplace();
      if (error) {
        self->answer = std::unexpected(error.message());
      } else {
        for (const auto& entry : entries) {
          const tcp::endpoint endpoint = entry.endpoint();
          (*self->answer)
              ->push_back(make_peer(endpoint.data(), static_cast<socklen_t>(endpoint.size())));
        }
      }
      self->time_limit.cancel();
    });
  }

  asio::ip::basic_resolver<tcp, Executor> resolver;
  LoopTimer time_limit;
  std::optional<std::expected<Peers, std::string>> answer;
};

std::unexpected<ConnectTrouble> late(std::string why) {
  return std::unexpected(ConnectTrouble{true, std::move(why)});
}

const std::string no_connection_in_time = "no connection in time";

Task<std::expected<Peer, ConnectTrouble>> connect_to_only(Loop& loop, const Peer& peer,
                                                          MonotonicTime deadline, Socket& socket) {
  using Result = std::expected<Peer, ConnectTrouble>;
  Deadline limit(loop, deadline, [&socket] {
    error_code ignored;
    socket.close(ignored);
  });
  tcp::endpoint endpoint;
  endpoint.resize(peer.bytes);
  std::copy_n(reinterpret_cast<const char*>(peer.raw()), peer.bytes,
              reinterpret_cast<char*>(endpoint.data()));
  const auto start = [&](Resumption<error_code> done) {
    socket.async_connect(endpoint, std::move(done));
  };
  auto connecting = suspend<error_code>(start);
  const error_code error = co_await connecting;
  if (limit.has_passed()) co_return Result(late(no_connection_in_time));
  if (error) co_return Result(std::unexpected(ConnectTrouble{false, error.message()}));
  co_return Result(peer);
}

Task<std::expected<ConnectedPeer, ConnectTrouble>> run_race(Loop& loop, const Peers& peers,
                                                            MonotonicTime deadline) {
  using Result = std::expected<ConnectedPeer, ConnectTrouble>;
  ConnectRace race(in_order_of_tries(peers));
  for (;;) {
    const MonotonicTime now = MonotonicClock::now();
    const auto state = race.advance(now);
    if (state == ConnectRace::State::connected) {
      co_return Result(ConnectedPeer{race.take_socket(), race.winner()});
    }
    if (state == ConnectRace::State::failed) {
      auto why = std::generic_category().message(race.error());
      co_return Result(std::unexpected(ConnectTrouble{false, std::move(why)}));
    }
    if (now >= deadline) co_return Result(late(no_connection_in_time));
    WatchedSocket events(loop, race.descriptor());
    Deadline limit(loop, deadline, [&events] { events.cancel(); });
    const auto start = [&](Resumption<bool> woken) {
      events.wait(WatchedSocket::Way::readable, std::move(woken));
    };
    auto waiting = suspend<bool>(start);
    co_await waiting;
  }
}

}  // namespace

Task<std::expected<Peers, ConnectTrouble>> look_up(Loop& loop, std::string host, std::string port,
                                                   MonotonicTime deadline) {
  using Result = std::expected<Peers, ConnectTrouble>;
  // No wait for the resolver's one thread.
  if (const auto numeric = numeric_peer(host, port)) co_return Result(Peers{*numeric});
  const auto looked_up = std::make_shared<LookUp>(loop, deadline);
  LookUp::start(looked_up, host, port);
  const auto start = [&](Resumption<error_code> over) {
    looked_up->time_limit.async_wait(std::move(over));
  };
  auto waiting = suspend<error_code>(start);
  co_await waiting;
  if (!looked_up->answer) {
    looked_up->resolver.cancel();  // One that has not begun never does.
    co_return Result(late("the look-up of the name took too long"));
  }
  auto& answer = *looked_up->answer;
  if (answer) co_return Result(std::move(*answer));
  co_return Result(std::unexpected(ConnectTrouble{false, std::move(answer.error())}));
}

Task<std::expected<Peer, ConnectTrouble>> connect_to_first(Loop& loop, const Peers& peers,
                                                           MonotonicTime deadline, Socket& socket) {
  using Result = std::expected<Peer, ConnectTrouble>;
  if (peers.size() == 1) {
    auto connecting = connect_to_only(loop, peers.front(), deadline, socket);
    co_return co_await std::move(connecting);
  }
  auto racing = run_race(loop, peers, deadline);
  auto connected = co_await std::move(racing);
  if (!connected) co_return Result(std::unexpected(std::move(connected.error())));
  error_code error;
  socket.assign(connected->peer.family() == AF_INET6 ? tcp::v6() : tcp::v4(),
                connected->socket.get(), error);
  if (error) co_return Result(std::unexpected(ConnectTrouble{false, error.message()}));
  (void)connected->socket.release();
  co_return Result(connected->peer);
}

Task<std::expected<Peer, ConnectTrouble>> first_that_accepts(Loop& loop, const Peers& peers,
                                                             MonotonicTime deadline) {
  using Result = std::expected<Peer, ConnectTrouble>;
  auto racing = run_race(loop, peers, deadline);
  auto connected = co_await std::move(racing);
  if (!connected) co_return Result(std::unexpected(std::move(connected.error())));
  co_return Result(connected->peer);
}

}  // namespace idem
