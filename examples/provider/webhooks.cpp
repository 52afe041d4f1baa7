#include "webhooks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/basic_resolver.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <ctime>
#include <memory>

#include "json_text.hpp"
#include "read_message.hpp"
#include "standard_webhook.hpp"

namespace provider {
namespace {

using tcp = asio::ip::tcp;
using Resolver = asio::ip::basic_resolver<tcp, Executor>;

// Long enough for a receiver that is killed and started again; real providers go on for days.
constexpr int attempts_max = 8;
constexpr std::chrono::milliseconds backoff_first{100};
constexpr std::chrono::milliseconds backoff_max{2'000};
// A receiver with one thread may wait for the answer that an early event delays.
constexpr std::chrono::seconds attempt_time{2};

std::string iso_time(std::time_t now) {
  char text[32];
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string signed_request(const Event& event, const Receiver& receiver) {
  const auto timestamp = std::to_string(std::time(nullptr));
  const auto signature = webhook_signature(receiver.secret, event.id, timestamp, event.body);
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}:{}\r\nContent-Type: application/json\r\nwebhook-id: {}\r\n"
      "webhook-timestamp: {}\r\nwebhook-signature: {}\r\nConnection: close\r\n"
      "Content-Length: {}\r\n\r\n{}",
      receiver.path, receiver.host, receiver.port, event.id, timestamp, signature,
      event.body.size(), event.body);
}

/// `delivered`: whether the receiver answered 2xx.
Task attempt(const Event& event, World& world, bool& delivered) {
  ++world.webhooks.attempts;
  const auto& receiver = *world.receiver;
  Resolver resolver(world.executor);
  const auto [unknown, addresses] =
      co_await resolver.async_resolve(receiver.host, receiver.port, token);
  if (unknown) co_return;
  const auto socket = std::make_shared<Socket>(world.executor);
  Timer deadline(world.executor, attempt_time);
  deadline.async_wait([socket](const auto& cancelled) {
    boost::system::error_code ignored;
    if (!cancelled) socket->close(ignored);
  });
  boost::system::error_code error = asio::error::host_not_found;
  for (auto address = addresses.begin(); error && address != addresses.end(); ++address) {
    const auto [unreachable] = co_await socket->async_connect(address->endpoint(), token);
    if (!socket->is_open()) co_return;  // The deadline has passed: an open socket would have none.
    error = unreachable;
    boost::system::error_code ignored;
    if (error) socket->close(ignored);
  }
  if (error) co_return;
  const std::string request = signed_request(event, receiver);
  const auto [unsent, sent] = co_await asio::async_write(*socket, asio::buffer(request), token);
  if (unsent) co_return;
  boost::beast::flat_buffer buffer;
  http::response_parser<http::string_body> response;
  response.eager(true);
  co_await read_message(*socket, buffer, response, Until::end, error);
  delivered =
      !error && http::to_status_class(response.get().result()) == http::status_class::successful;
}

/// Counts an attempt's end, which may be the end of a delivery.
void settle(Event& event, World& world, bool delivered) {
  ++event.attempts;
  if (!delivered && event.attempts < attempts_max) return;
  ++(delivered ? world.webhooks.delivered : world.webhooks.given_up);
  --world.webhooks.under_way;
  --event.deliveries;
  event.attempts = 0;
}

}  // namespace

std::optional<Receiver> parse_receiver(std::string_view url) {
  constexpr std::string_view scheme = "http://";
  if (!url.starts_with(scheme)) return std::nullopt;
  url.remove_prefix(scheme.size());
  const auto authority = url.substr(0, url.find('/'));
  const auto colon = authority.rfind(':');
  Receiver receiver{.host = std::string(authority.substr(0, colon))};
  if (colon != authority.npos) receiver.port = authority.substr(colon + 1);
  if (authority.size() < url.size()) receiver.path = url.substr(authority.size());
  if (receiver.host.empty() || receiver.port.empty()) return std::nullopt;
  return receiver;
}

std::optional<Event> event_of(const Effect& effect, const Faults& faults, World& world) {
  if (!world.receiver) return std::nullopt;
  ++world.webhooks.events;
  if (faults.lose_webhook) {
    ++world.webhooks.lost;
    return std::nullopt;
  }
  const std::string_view answer(effect.answer);  // An object: the event's data goes on in it.
  Event event{
      .id = fmt::format("msg_{:016x}", world.nonce()),
      .body = fmt::format(
          R"({{"type":"{}","timestamp":"{}","data":{},"key":{},"operation":{},"fence":{}}}}})",
          is_refund(effect.target) ? "refund.succeeded" : "charge.succeeded",
          iso_time(std::time(nullptr)), answer.substr(0, answer.size() - 1), in_quotes(effect.key),
          in_quotes(effect.operation), in_quotes(effect.fence)),
      .late = faults.late_webhook,
      .deliveries = faults.repeat_webhook ? 2 : 1};
  world.webhooks.under_way += static_cast<std::uint64_t>(event.deliveries);
  return event;
}

Task deliver_early(Event& event, World& world) {
  bool delivered = false;
  co_await attempt(event, world, delivered);
  settle(event, world, delivered);
}

Task deliver(Event event, World& world) {
  co_await pause(event.late, world.executor);
  while (event.deliveries > 0) {
    if (event.attempts > 0) {
      const auto backoff = std::min(backoff_first * (1 << (event.attempts - 1)), backoff_max);
      co_await pause(backoff, world.executor);
    }
    bool delivered = false;
    co_await attempt(event, world, delivered);
    settle(event, world, delivered);
  }
}

}  // namespace provider
