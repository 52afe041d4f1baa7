#include "control.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "export.hpp"
#include "faults.hpp"

namespace provider {
namespace {

template <class Number>
bool read_number(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc{} && end == text.data() + text.size();
}

Reply ledger(const Request& request, World& world) {
  const std::string_view target(request.target());
  if (request.method() == http::verb::delete_) {
    world.ledger.clear();
    world.deduplication.clear();  // A replay of a charge that is not in the ledger would be wrong.
  }
  if (query_value(target, "format") == "text") {
    return {.fields = "Content-Type: text/plain\r\n", .body = world.ledger.text()};
  }
  const auto key = query_value(target, "key");
  return json_reply(200, key.empty() ? world.ledger.json() : world.ledger.json_of(key));
}

/// False: a value is invalid.
bool arm(std::string_view target, World& world) {
  auto list = query_value(target, "list");
  const auto chance_text = query_value(target, "chance");
  if (chance_text.empty()) {
    const auto text = query_value(target, "count");
    std::size_t count = 1;
    if (!text.empty() && !read_number(text, count)) return false;
    world.armed.arm(std::move(list), query_value(target, "path"), count);
    return true;
  }
  const auto text = query_value(target, "seed");
  double chance = 0;
  std::uint64_t seed = world.nonce();
  if (!read_number(chance_text, chance) || !(chance >= 0 && chance <= 1)) return false;
  if (!text.empty() && !read_number(text, seed)) return false;
  world.armed.arm_by_chance(std::move(list), query_value(target, "path"), chance, seed);
  return true;
}

Reply faults(const Request& request, World& world) {
  const std::string_view target(request.target());
  if (request.method() == http::verb::delete_) world.armed.disarm();
  if (request.method() == http::verb::post) {
    const auto list = query_value(target, "list");
    if (!parse_faults(list)) return json_reply(418, R"({"error":"unknown fault"})");
    if (list.empty() || !arm(target, world)) {
      return json_reply(400, R"({"error":"list=LIST, and count=N or chance=0.N are wanted"})");
    }
  }
  return json_reply(200, world.armed.json());
}

Reply queries(const Request& request, World& world) {
  const std::string_view target(request.target());
  if (request.method() == http::verb::delete_) world.queries = {};
  if (request.method() == http::verb::post) {
    long after = 0;
    const auto status = query_value(target, "status");
    const auto shown_after = query_value(target, "shown-after");
    const bool is_good = (status.empty() || read_number(status, world.queries.status)) &&
                         (shown_after.empty() || read_number(shown_after, after));
    if (!is_good) return json_reply(400, R"({"error":"status=NNN and shown-after=MS are wanted"})");
    if (!shown_after.empty()) world.queries.shown_after = std::chrono::milliseconds(after);
  }
  return json_reply(200, fmt::format(R"({{"status":{},"shown_after_ms":{}}})", world.queries.status,
                                     world.queries.shown_after.count()));
}

Reply inbox(const Request& request, World& world) {
  const std::string_view target(request.target());
  if (request.method() == http::verb::delete_) world.inbox.clear();
  if (const auto id = query_value(target, "id"); !id.empty()) {
    return json_reply(200, world.inbox.json_of_id(id));
  }
  if (const auto subject = query_value(target, "subject"); !subject.empty()) {
    return json_reply(200, world.inbox.json_of_subject(subject));
  }
  return json_reply(200, world.inbox.json());
}

Reply webhooks(const WebhookCounts& counts) {
  return json_reply(
      200, fmt::format(R"({{"events":{},"lost":{},"attempts":{},"delivered":{},"given_up":{},)"
                       R"("under_way":{}}})",
                       counts.events, counts.lost, counts.attempts, counts.delivered,
                       counts.given_up, counts.under_way));
}

}  // namespace

asio::awaitable<bool, Executor> control(const Request& request, World& world, Reply& reply) {
  const std::string_view target(request.target());
  const auto path = path_of(request);
  const auto method = request.method();
  if (path == "/ledger") {
    reply = ledger(request, world);
  } else if (path == "/export" && method == http::verb::get) {
    reply = export_of(target, world.ledger);
  } else if (path == "/faults") {
    reply = faults(request, world);
  } else if (path == "/queries") {
    reply = queries(request, world);
  } else if (path == "/inbox" && method != http::verb::post) {
    reply = inbox(request, world);
  } else if (path == "/webhooks" && method == http::verb::get) {
    reply = webhooks(world.webhooks);
  } else if (path == "/release") {
    auto& hold = world.hold(query_value(target, "name"));
    reply = json_reply(200, fmt::format(R"({{"released":{}}})", std::exchange(hold.waiting, 0)));
    ++hold.releases;
    hold.changed.cancel();
  } else if (path == "/held") {
    auto& hold = world.hold(query_value(target, "name"));
    std::size_t count = 0;
    read_number(query_value(target, "count"), count);
    while (hold.waiting < count) co_await hold.changed.async_wait(token);
    reply = json_reply(200, fmt::format(R"({{"held":{}}})", hold.waiting));
  } else {
    co_return false;
  }
  co_return true;
}

}  // namespace provider
