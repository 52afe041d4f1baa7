#include "webhooks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/basic_resolver.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <ctime>

#include "json_text.hpp"
#include "standard_webhook.hpp"

namespace provider {
namespace {

using tcp = asio::ip::tcp;
using Stream = boost::beast::basic_stream<tcp, Executor>;
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

Request signed_request(const Event& event, const Receiver& receiver) {
  const auto timestamp = std::to_string(std::time(nullptr));
  Request request(http::verb::post, receiver.path, 11);
  request.set(http::field::host, receiver.host + ":" + receiver.port);
  request.set(http::field::content_type, "application/json");
  request.set("webhook-id", event.id);
  request.set("webhook-timestamp", timestamp);
  request.set("webhook-signature",
              webhook_signature(receiver.secret, event.id, timestamp, event.body));
  request.keep_alive(false);
  request.body() = event.body;
  request.prepare_payload();
  return request;
}

/// `delivered`: whether the receiver answered 2xx.
Task attempt(const Event& event, World& world, bool& delivered) {
  ++world.webhooks.attempts;
  const auto& receiver = *world.receiver;
  Resolver resolver(world.executor);
  const auto [unknown, addresses] =
      co_await resolver.async_resolve(receiver.host, receiver.port, token);
  if (unknown) co_return;
  Stream stream(world.executor);
  stream.expires_after(attempt_time);
  const auto [unreachable, endpoint] = co_await stream.async_connect(addresses, token);
  if (unreachable) co_return;
  const Request request = signed_request(event, receiver);
  const auto [unsent, sent] = co_await http::async_write(stream, request, token);
  if (unsent) co_return;
  boost::beast::flat_buffer buffer;
  http::response<http::string_body> response;
  const auto [cut, read] = co_await http::async_read(stream, buffer, response, token);
  delivered = !cut && http::to_status_class(response.result()) == http::status_class::successful;
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
