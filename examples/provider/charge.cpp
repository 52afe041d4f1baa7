#include "charge.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <utility>

#include "json_text.hpp"

namespace provider {
namespace {

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

std::string answer_of(const Request& request, std::uint64_t number, std::uint64_t nonce,
                      std::string_view reference) {
  auto body = fmt::format(R"({{"id":"ch_{}","nonce":"{:016x}")", number, nonce);
  for (const auto* name : {"amount", "currency"}) {
    const auto value = raw_member(request.body(), name);
    if (!value.empty()) body += fmt::format(R"(,"{}":{})", name, value);
  }
  if (!reference.empty()) body += R"(,"reference":)" + in_quotes(reference);
  if (is_refund(std::string_view(request.target()))) {
    const auto charge = text_member(request.body(), "charge");
    if (!charge.empty()) body += R"(,"charge":)" + in_quotes(charge);
  }
  if (std::string_view(request.target()).starts_with("/echo")) body += "," + echo(request);
  return body + "}";
}

void print(const Effect& effect, std::uint64_t number) {
  fmt::print("effect={} {} {} key={} fence={}\n", number, effect.method, effect.target, effect.key,
             effect.fence);
  std::fflush(stdout);
}

std::int64_t now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

Effect effect_of(const Request& request, std::string answer) {
  return {.key = field(request, "Idempotency-Key"),
          .operation = field(request, "Idem-Operation"),
          .fence = field(request, "Idem-Fence"),
          .attempt = field(request, "Idem-Attempt"),
          .method = std::string(request.method_string()),
          .target = std::string(request.target()),
          .body_bytes = request.body().size(),
          .body_digest = digest_of(request.body()),
          .answer = std::move(answer),
          .reference = text_member(request.body(), "reference"),
          .at = now()};
}

}  // namespace

bool is_charging(http::verb method) {
  return method == http::verb::post || method == http::verb::put || method == http::verb::patch ||
         method == http::verb::delete_;
}

Reply charge(const Request& request, World& world) {
  if (request.method() == http::verb::post &&
      text_member(request.body(), "source") == "tok_declined") {
    world.ledger.decline(effect_of(request, std::string(request.body())));
    return json_reply(402, R"({"error":"card_declined"})");
  }
  const auto number = world.ledger.next();
  const auto reference = text_member(request.body(), "reference");
  auto body = answer_of(request, number, world.nonce(), reference);
  Effect effect = effect_of(request, body);
  if (!world.quiet) print(effect, number);
  world.ledger.charge(std::move(effect));
  auto reply = json_reply(201, std::move(body));
  reply.fields += fmt::format("Location: /charges/ch_{0}\r\nX-Provider-Effect: {0}\r\n", number);
  return reply;
}

Reply look_up(const Request& request, const World& world) {
  const std::string_view target(request.target());
  if (target.starts_with("/echo")) return json_reply(200, "{" + echo(request) + "}");
  const auto path = path_of(request);
  const Query query{.refunds = path == "/refunds",
                    .key = query_value(target, "key"),
                    .reference = query_value(target, "reference"),
                    .operation = query_value(target, "operation"),
                    .until = Clock::now() - world.queries.shown_after};
  const bool asks = !(query.key.empty() && query.reference.empty() && query.operation.empty());
  if ((path == "/charges" || path == "/refunds") && asks) {
    if (world.queries.status != 0) {
      return json_reply(world.queries.status, R"({"error":"queries are out of order"})");
    }
    const auto list = world.ledger.answers(query);
    return json_reply(200, fmt::format(R"({{"{}":{}}})", path.substr(1), list));
  }
  constexpr std::string_view prefix = "/charges/ch_";
  std::uint64_t number = 0;
  if (target.starts_with(prefix)) {
    std::from_chars(target.data() + prefix.size(), target.data() + target.size(), number);
  }
  const Effect* effect = world.ledger.find(number);
  if (effect == nullptr) return json_reply(404, R"({"error":"no such charge"})");
  return json_reply(200, effect->answer);
}

}  // namespace provider
