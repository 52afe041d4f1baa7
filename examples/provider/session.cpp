#include "session.hpp"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <charconv>
#include <ctime>
#include <limits>
#include <utility>

#include "faults.hpp"

namespace provider {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

using Request = http::request<http::string_body>;
constexpr auto token = asio::as_tuple(asio::use_awaitable_t<Executor>{});

struct Reply {
  int status = 200;
  std::string fields{};  ///< Whole lines.
  std::string body{};
  Wire wire = Wire::whole;
  bool close = false;
};

std::string field(const Request& request, std::string_view name) {
  std::string all;  // Two lines are shown as two: whoever sent them is to be found out.
  const auto [first, last] = request.equal_range(name);
  for (auto it = first; it != last; ++it) {
    if (it != first) all += ", ";
    all += std::string_view(it->value());
  }
  return all;
}

std::string date_now() {
  static std::time_t second = 0;
  static char text[64];
  if (const auto now = std::time(nullptr); now != second) {
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    second = now;
  }
  return text;
}

std::string to_bytes(const Reply& reply, bool head_request) {
  if (reply.wire == Wire::dropped) return {};
  if (reply.wire == Wire::garbage) return "\x16\x03\x01 this is no HTTP\r\n\r\n";
  const auto reason = http::obsolete_reason(static_cast<http::status>(reply.status));
  auto out =
      fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n{}{}", reply.status, std::string_view(reason),
                  date_now(), reply.fields, reply.close ? "Connection: close\r\n" : "");
  if (reply.status == 204 || reply.status == 304) return out + "\r\n";
  const auto half = reply.body.substr(0, reply.body.size() / 2);
  const auto rest = reply.body.substr(half.size());
  const bool chunked = reply.wire == Wire::chunked || reply.wire == Wire::truncated_chunked;
  if (chunked) {
    out += "Transfer-Encoding: chunked\r\n\r\n";
  } else if (reply.wire == Wire::until_close) {
    out += "\r\n";
  } else {
    out += fmt::format("Content-Length: {}\r\n\r\n", reply.body.size());
  }
  if (head_request) return out;
  if (!chunked) return out + (reply.wire == Wire::truncated ? half : reply.body);
  if (!half.empty()) out += fmt::format("{:x}\r\n{}\r\n", half.size(), half);
  if (reply.wire == Wire::truncated_chunked) return out;
  if (!rest.empty()) out += fmt::format("{:x}\r\n{}\r\n", rest.size(), rest);
  return out + "0\r\n\r\n";
}

/// The raw JSON value of a top-level-looking member; empty when there is none. A demonstration's
/// eyesight, no parser: the provider only echoes it.
std::string_view member(std::string_view body, std::string_view name) {
  auto at = body.find(fmt::format("\"{}\"", name));
  if (at == body.npos) return {};
  at = body.find_first_not_of(": \t\r\n", at + name.size() + 2);
  if (at == body.npos) return {};
  const auto end = body.find_first_of(body[at] == '"' ? "\"" : ",} \r\n", at + 1);
  if (end == body.npos) return {};
  return body.substr(at, end - at + (body[at] == '"' ? 1 : 0));
}

std::string echo(const Request& request) {
  std::string fields;
  for (const auto& line : request) {
    fields += fmt::format("{}[{},{}]", fields.empty() ? "" : ",",
                          in_quotes(std::string_view(line.name_string())),
                          in_quotes(std::string_view(line.value())));
  }
  return fmt::format(R"("method":{},"target":{},"body_bytes":{},"fields":[{}])",
                     in_quotes(std::string_view(request.method_string())),
                     in_quotes(std::string_view(request.target())), request.body().size(), fields);
}

/// Appends the effect, whatever it was asked before.
Reply charge(const Request& request, const Faults& faults, World& world) {
  const auto number = world.ledger.next();
  auto body = fmt::format(R"({{"id":"ch_{}","nonce":"{:016x}")", number, world.nonce());
  for (const auto* name : {"amount", "currency"}) {
    const auto value = member(request.body(), name);
    if (!value.empty()) body += fmt::format(R"(,"{}":{})", name, value);
  }
  const std::string_view target(request.target());
  if (target.starts_with("/echo")) body += "," + echo(request);
  body += "}";
  std::uint64_t digest = 14695981039346656037U;  // FNV-1a: tells bodies apart, proves nothing.
  for (const unsigned char c : request.body()) digest = (digest ^ c) * 1099511628211U;
  world.ledger.charge({field(request, "Idempotency-Key"), field(request, "Idem-Operation"),
                       field(request, "Idem-Fence"), field(request, "Idem-Attempt"),
                       std::string(request.method_string()), std::string(target),
                       request.body().size(), digest, body});
  if (!world.quiet) {
    fmt::print("effect={} {} {} key={} fence={}\n", number,
               std::string_view(request.method_string()), target, field(request, "Idempotency-Key"),
               field(request, "Idem-Fence"));
    std::fflush(stdout);
  }
  Reply reply{.status = faults.status != 0 ? faults.status : 201,
              .fields = "Content-Type: application/json\r\n",
              .body = std::move(body),
              .wire = faults.wire,
              .close = faults.close};
  reply.fields += fmt::format("Location: /charges/ch_{0}\r\nX-Provider-Effect: {0}\r\n", number);
  if (faults.size) reply.body.resize(*faults.size, '.');
  return reply;
}

Task wait_in(Hold& hold) {
  ++hold.waiting;
  hold.changed.cancel();
  const auto releases = hold.releases;
  while (hold.releases == releases) co_await hold.changed.async_wait(token);
}

Task pause(std::chrono::milliseconds time, Executor executor) {
  if (time.count() == 0) co_return;
  Timer timer(executor, time);
  co_await timer.async_wait(token);
}

Task execute(Socket& socket, const Request& request, const Faults& faults, World& world,
             Reply& reply) {
  if (!faults.gate_before.empty()) co_await wait_in(world.hold(faults.gate_before));
  co_await pause(faults.slow, world.executor);
  if (faults.drop_before) {
    reply.wire = Wire::dropped;
    co_return;
  }
  if (faults.refuse != 0) {
    reply = {.status = faults.refuse,
             .fields = "Content-Type: application/json\r\n",
             .body = R"({"refused":true})",
             .close = faults.close};
  } else {
    reply = charge(request, faults, world);
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

/// What tests ask of the provider itself: /ledger, /held, /release. False when it is none of these.
asio::awaitable<bool, Executor> control(const Request& request, World& world, Reply& reply) {
  const std::string_view target(request.target());
  const auto path = target.substr(0, target.find('?'));
  reply.fields = "Content-Type: application/json\r\n";
  const auto name = query_value(target, "name");
  if (path == "/ledger") {
    if (request.method() == http::verb::delete_) world.ledger.clear();
    const auto key = query_value(target, "key");
    if (query_value(target, "format") == "text") {
      reply.fields = "Content-Type: text/plain\r\n";
      reply.body = world.ledger.text();
    } else {
      reply.body = key.empty() ? world.ledger.json() : world.ledger.json_of(key);
    }
  } else if (path == "/release") {
    auto& hold = world.hold(name);
    reply.body = fmt::format(R"({{"released":{}}})", std::exchange(hold.waiting, 0));
    ++hold.releases;
    hold.changed.cancel();
  } else if (path == "/held") {
    auto& hold = world.hold(name);
    const auto text = query_value(target, "count");
    std::size_t count = 0;
    std::from_chars(text.data(), text.data() + text.size(), count);
    while (hold.waiting < count) co_await hold.changed.async_wait(token);
    reply.body = fmt::format(R"({{"held":{}}})", hold.waiting);
  } else {
    co_return false;
  }
  co_return true;
}

Reply look_up(const Request& request, const World& world) {
  const std::string_view target(request.target());
  constexpr std::string_view prefix = "/charges/ch_";
  Reply reply{.fields = "Content-Type: application/json\r\n"};
  if (target.starts_with("/echo")) {
    reply.body = "{" + echo(request) + "}";
    return reply;
  }
  std::uint64_t number = 0;
  if (target.starts_with(prefix)) {
    std::from_chars(target.data() + prefix.size(), target.data() + target.size(), number);
  }
  const Effect* effect = world.ledger.find(number);
  reply.status = effect != nullptr ? 200 : 404;
  reply.body = effect != nullptr ? effect->answer : R"({"error":"no such charge"})";
  return reply;
}

Task answer(Socket& socket, const Request& request, World& world, Reply& reply) {
  const bool handled = co_await control(request, world, reply);
  if (handled) co_return;
  std::string list = field(request, "X-Fault");
  if (list.empty()) list = query_value(std::string_view(request.target()), "fault");
  const auto faults = parse_faults(list);
  const auto verb = request.method();
  if (!faults) {
    reply = {.status = 418, .body = R"({"error":"unknown fault"})"};
  } else if (verb == http::verb::post || verb == http::verb::put || verb == http::verb::patch ||
             verb == http::verb::delete_) {
    world.ledger.arrived(field(request, "Idempotency-Key"));
    co_await execute(socket, request, *faults, world, reply);
  } else {
    reply = look_up(request, world);
    reply.close = faults->close;
  }
}

}  // namespace

Task serve(Socket socket, World& world) {
  boost::beast::flat_buffer buffer;
  for (bool open = true; open;) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(std::numeric_limits<std::uint64_t>::max());
    parser.eager(true);  // A small body arrives with its head: no second turn of the loop for it.
    const auto [head_error, head_bytes] =
        co_await http::async_read_header(socket, buffer, parser, token);
    if (head_error) break;
    if (!parser.is_done()) {
      if (parser.get()[http::field::expect] == "100-continue") {
        const std::string interim = "HTTP/1.1 100 Continue\r\n\r\n";
        co_await asio::async_write(socket, asio::buffer(interim), token);
      }
      const auto [error, bytes] = co_await http::async_read(socket, buffer, parser, token);
      if (error) break;
    }
    const Request request = parser.release();
    Reply reply;
    co_await answer(socket, request, world, reply);
    if (!request.keep_alive() || reply.wire == Wire::until_close) reply.close = true;
    const auto bytes = to_bytes(reply, request.method() == http::verb::head);
    const auto [error, sent] = co_await asio::async_write(socket, asio::buffer(bytes), token);
    open = !error && !reply.close && (reply.wire == Wire::whole || reply.wire == Wire::chunked);
  }
  boost::system::error_code ignored;
  socket.shutdown(Socket::shutdown_both, ignored);
}

}  // namespace provider
