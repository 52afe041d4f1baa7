#include "session.hpp"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <ctime>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "charge.hpp"
#include "control.hpp"
#include "faults.hpp"
#include "message.hpp"
#include "read_message.hpp"
#include "webhooks.hpp"

namespace provider {
namespace {

/// The result of one request.
struct Outcome {
  Reply reply{};
  std::optional<Event> event{};  ///< To be sent once the answer is out.
};

/// Digest by which a request is compared with a kept one: with the path, as a key belongs to one
/// endpoint.
std::uint64_t digest_of_request(const Request& request) {
  const auto place =
      fmt::format("{} {}", std::string_view(request.method_string()), path_of(request));
  return digest_of(request.body(), digest_of(place));
}

/// Charges, or answers as the inbox or a kept answer says; then changes the answer as faults ask.
Task act(const Request& request, const Faults& faults, World& world, Outcome& outcome,
         const std::optional<Reply>& recalled) {
  auto& reply = outcome.reply;
  if (path_of(request) == "/inbox") {
    reply = world.inbox.receive(request, std::time(nullptr));
  } else if (recalled) {
    reply = *recalled;
  } else {
    const auto number = world.ledger.next();
    reply = charge(request, world);
    world.deduplication.keep(field(request, "Idempotency-Key"), reply, Clock::now());
    const Effect* effect = world.ledger.find(number);
    if (effect != nullptr) outcome.event = event_of(*effect, faults, world);
    if (outcome.event && faults.early_webhook) co_await deliver_early(*outcome.event, world);
  }
  if (faults.status != 0 && reply.status < 300) reply.status = faults.status;
  if (faults.size) reply.body.resize(*faults.size, '.');
  reply.wire = faults.wire;
  reply.close = faults.close;
}

Task execute(Socket& socket, const Request& request, const Faults& faults, World& world,
             Outcome& outcome, const std::optional<Reply>& recalled) {
  auto& reply = outcome.reply;
  if (!faults.gate_before.empty()) co_await wait_in(world.hold(faults.gate_before));
  co_await pause(faults.slow, world.executor);
  if (faults.drop_before) {
    reply.wire = Wire::dropped;
    co_return;
  }
  if (faults.refuse != 0) {
    reply = json_reply(faults.refuse, R"({"refused":true})");
    // Real providers keep their decisions as they keep charges, but not their own failures.
    if (faults.refuse == 402 && !recalled) {
      world.deduplication.keep(field(request, "Idempotency-Key"), reply, Clock::now());
    }
    reply.close = faults.close;
  } else {
    co_await act(request, faults, world, outcome, recalled);
  }
  for (const auto& [name, value] : faults.headers) {
    reply.fields += fmt::format("{}: {}\r\n", name, value);
  }
  if (faults.interim) {
    const std::string early = "HTTP/1.1 103 Early Hints\r\nLink: </charges>; rel=related\r\n\r\n";
    co_await asio::async_write(socket, asio::buffer(early), token);
  }
  co_await pause(faults.slow_after, world.executor);
  if (!faults.hold.empty()) co_await wait_in(world.hold(faults.hold));
}

/// Serves a charging request, unless its key is known.
Task execute_once(Socket& socket, const Request& request, const Faults& faults, World& world,
                  Outcome& outcome) {
  const auto key = field(request, "Idempotency-Key");
  world.ledger.arrived(key);
  std::optional<Reply> recalled;
  if (world.deduplication.window.count() > 0) {
    recalled = world.deduplication.arrive(key, digest_of_request(request), Clock::now());
  }
  co_await execute(socket, request, faults, world, outcome, recalled);
  if (!recalled) world.deduplication.finished(key);
}

/// The request's own faults, else those armed for it; none if a fault is unknown.
std::optional<Faults> faults_of(const Request& request, World& world) {
  auto list = field(request, "X-Fault");
  if (list.empty()) list = query_value(std::string_view(request.target()), "fault");
  if (list.empty() && is_charging(request.method())) list = world.armed.take(path_of(request));
  return parse_faults(list);
}

Task answer(Socket& socket, const Request& request, World& world, Outcome& outcome) {
  const bool handled = co_await control(request, world, outcome.reply);
  if (handled) co_return;
  const auto faults = faults_of(request, world);
  if (!faults) {
    outcome.reply = {.status = 418, .body = R"({"error":"unknown fault"})"};
  } else if (path_of(request) == "/inbox") {
    const std::optional<Reply> none;
    co_await execute(socket, request, *faults, world, outcome, none);
  } else if (is_charging(request.method())) {
    co_await execute_once(socket, request, *faults, world, outcome);
  } else {
    outcome.reply = look_up(request, world);
    outcome.reply.close = faults->close;
  }
}

}  // namespace

Task serve(Socket socket, World& world) {
  boost::beast::flat_buffer buffer;
  for (bool open = true; open;) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(std::numeric_limits<std::uint64_t>::max());
    parser.eager(true);  // A small body arrives with its head: no second turn of the loop for it.
    boost::system::error_code unread;
    co_await read_message(socket, buffer, parser, Until::head, unread);
    if (unread) break;
    if (!parser.is_done()) {
      if (parser.get()[http::field::expect] == "100-continue") {
        const std::string interim = "HTTP/1.1 100 Continue\r\n\r\n";
        co_await asio::async_write(socket, asio::buffer(interim), token);
      }
      co_await read_message(socket, buffer, parser, Until::end, unread);
      if (unread) break;
    }
    const Request request = parser.release();
    Outcome outcome;
    auto& reply = outcome.reply;
    co_await answer(socket, request, world, outcome);
    if (!request.keep_alive() || reply.wire == Wire::until_close) reply.close = true;
    const auto bytes = to_bytes(reply, request.method() == http::verb::head);
    const auto [error, sent] = co_await asio::async_write(socket, asio::buffer(bytes), token);
    if (outcome.event) {
      asio::co_spawn(world.executor, deliver(std::move(*outcome.event), world), asio::detached);
    }
    open = !error && !reply.close && (reply.wire == Wire::whole || reply.wire == Wire::chunked);
  }
  boost::system::error_code ignored;
  socket.shutdown(Socket::shutdown_both, ignored);
}

}  // namespace provider
