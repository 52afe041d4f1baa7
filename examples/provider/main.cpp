// A simulated payment provider. By default it ignores idempotency keys: every POST, PUT, PATCH or
// DELETE that arrives whole appends one effect to its ledger, however often it has seen the key. So
// its ledger shows each test whether something ran twice. README.md lists its faults.

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/signal_set.hpp>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "flags.hpp"
#include "session.hpp"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Acceptor = asio::basic_socket_acceptor<tcp, provider::Executor>;

std::optional<tcp::endpoint> parse_endpoint(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  const auto port_text = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto* const end = port_text.end();
  if (std::from_chars(port_text.begin(), end, port).ptr != end) return std::nullopt;
  boost::system::error_code error;
  const auto host = asio::ip::make_address(std::string(text.substr(0, colon)), error);
  if (error) return std::nullopt;
  return tcp::endpoint(host, port);
}

provider::Task accept_all(Acceptor& acceptor, provider::World& world) {
  for (;;) {
    provider::Socket socket(world.executor);
    const auto [error] = co_await acceptor.async_accept(socket, provider::token);
    if (error == asio::error::operation_aborted) co_return;
    if (error) continue;
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    asio::co_spawn(world.executor, provider::serve(std::move(socket), world), asio::detached);
  }
}

}  // namespace

int main(int count, char** arguments) {
  auto flags = provider::parse_flags(count, arguments);
  const auto endpoint = flags ? parse_endpoint(flags->listen) : std::nullopt;
  if (!endpoint) {
    fmt::print(stderr, "{}\n", provider::usage);
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  asio::io_context loop(1);
  provider::World world(loop.get_executor());
  world.quiet = flags->quiet;
  world.deduplication.window = flags->deduplicate;
  world.inbox.secret = std::move(flags->inbox_secret);
  world.receiver = std::move(flags->receiver);

  Acceptor acceptor(loop.get_executor());
  boost::system::error_code error;
  acceptor.open(endpoint->protocol(), error);
  acceptor.set_option(Acceptor::reuse_address(true), error);
  acceptor.bind(*endpoint, error);
  if (!error) acceptor.listen(4096, error);
  if (error) {
    fmt::print(stderr, "cannot listen on {}: {}\n", flags->listen, error.message());
    return 1;
  }
  fmt::print(stderr, "listening address={}:{} role=provider\n",
             acceptor.local_endpoint().address().to_string(), acceptor.local_endpoint().port());

  asio::signal_set signals(loop, SIGTERM, SIGINT);
  signals.async_wait([&](const auto&, int) { loop.stop(); });
  asio::co_spawn(loop, accept_all(acceptor, world), asio::detached);
  loop.run();
  if (!world.quiet) fmt::print(stderr, "{}\n", world.ledger.summary());
  return 0;
}
