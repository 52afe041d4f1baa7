#include "admin/tokens_api.hpp"

#include "admin/deciding.hpp"
#include "admin/order_reading.hpp"
#include "admin/replies.hpp"
#include "admin/tokens_json.hpp"
#include "core/bytes/percent.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/record/store_clock.hpp"

#include <functional>

namespace idem::admin {
namespace {

constexpr std::string_view tokens_path = "/v1/tokens";

struct TokenOrder {
  std::string name;
  Role role{};
};

Read<TokenOrder> parse_token_order(std::string_view body) {
  const auto object = read_object(body, {"name", "role", "by"});
  if (!object) return std::unexpected(object.error());
  auto name = read_text(*object, "name", limits::operator_name_bytes_max);
  if (!name) return std::unexpected(std::move(name.error()));
  if (!is_token_name(*name)) {
    return wrong("/name", "must have visible characters of ASCII only, and no # in front");
  }
  const auto named = read_text(*object, "role", limits::operator_name_bytes_max);
  if (!named) return std::unexpected(named.error());
  const auto role = parse_role(*named);
  if (!role) return wrong("/role", "must be viewer, support or operator");
  return TokenOrder{std::move(*name), *role};
}

}  // namespace

Task<WireAnswer> TokensApi::answer_to(http::ServerStream& client, const Caller& caller) {
  const auto& head = client.head();
  const std::string_view target = head.origin_form;
  const std::string path(target.substr(0, target.find('?')));
  if (path.size() < target.size()) co_return invalid("This path has no parameters.");
  if (parts_.login.tokens_file().empty()) {
    co_return to_answer({.code = ProblemCode::not_found,
                         .detail = "This process has no file of tokens (admin_tokens)."});
  }
  if (head.method == "GET") {
    auto page = co_await list();
    co_return page;
  }
  auto reading = read_order(parts_, client, caller);
  const auto order = co_await reading;
  if (!order) co_return order.error();
  if (path == tokens_path) {
    auto answer = co_await make(*order);
    co_return answer;
  }
  const auto segment = std::string_view(path).substr(tokens_path.size() + 1);
  const auto name = percent_decoded(segment.substr(0, segment.find('/')));
  if (!name) co_return invalid("The name in the path is no percent-encoded text.");
  auto answer = co_await revoke(*name, *order);
  co_return answer;
}

Task<WireAnswer> TokensApi::list() {
  using Listed = std::expected<std::vector<TokenEntry>, std::string>;
  std::function<Listed()> work = [path = parts_.login.tokens_file()] { return read_tokens(path); };
  auto reading = run_offloaded(parts_.loop, offload_, work);
  const auto& tokens = co_await reading;
  if (!tokens) co_return state_refused(tokens.error());
  co_return json_answer(tokens_page(*tokens));
}

Task<WireAnswer> TokensApi::make(const OrderBody& received) {
  const auto order = parse_token_order(received.body);
  if (!order) co_return invalid(order.error());
  // Otherwise one operator would have as many names as a decision needs.
  if (parts_.login.approvals().are_needed()) {
    co_return state_refused(
        "Decisions need approvals here, so tokens are made on the gateway's machine: idem admin "
        "token NAME --role ROLE --tokens-file FILE.");
  }
  Deciding deciding(parts_, received.signer, "tokens.make", order->name);
  auto beginning = deciding.begin({}, {});
  auto not_noted = co_await beginning;
  if (not_noted) co_return std::move(*not_noted);
  using Made = std::expected<std::string, std::string>;
  std::function<Made()> work = [path = parts_.login.tokens_file(), order = *order,
                                at = to_rfc3339(wall_time())] {
    return add_token(path, order.name, order.role, at);
  };
  auto making = run_offloaded(parts_.loop, offload_, work);
  const auto& token = co_await making;
  auto ending =
      deciding.end(token ? std::string(name_of(order->role)) : "refused: " + token.error());
  co_await ending;
  if (!token) co_return state_refused(token.error());
  parts_.log(LogLevel::info, "admin_token_made",
             {{"name", order->name},
              {"role", std::string(name_of(order->role))},
              {"source", received.decider}});
  co_return json_answer(token_page(order->name, order->role, *token));
}

Task<WireAnswer> TokensApi::revoke(std::string name, const OrderBody& received) {
  const auto reason = parse_reason(received.body);
  if (!reason) co_return invalid(reason.error());
  Deciding deciding(parts_, received.signer, "tokens.revoke", name);
  auto beginning = deciding.begin(*reason, {});
  auto not_noted = co_await beginning;
  if (not_noted) co_return std::move(*not_noted);
  using Revoked = std::expected<bool, std::string>;
  std::function<Revoked()> work = [path = parts_.login.tokens_file(), name] {
    return revoke_token(path, name);
  };
  auto revoking = run_offloaded(parts_.loop, offload_, work);
  const auto& revoked = co_await revoking;
  auto ending = deciding.end(!revoked   ? "refused: " + revoked.error()
                             : *revoked ? "revoked"
                                        : "refused: no token has this name");
  co_await ending;
  if (!revoked) co_return state_refused(revoked.error());
  if (!*revoked) {
    co_return to_answer({.code = ProblemCode::not_found, .detail = "No token has this name."});
  }
  parts_.log(LogLevel::info, "admin_token_revoked",
             {{"name", name}, {"source", received.decider}, {"reason", *reason}});
  auto page = co_await list();
  co_return page;
}

}  // namespace idem::admin
