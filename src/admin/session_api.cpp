#include "admin/session_api.hpp"

#include "admin/json_members.hpp"
#include "admin/order_body.hpp"
#include "admin/order_reading.hpp"
#include "admin/replies.hpp"
#include "json/writer.hpp"

#include <idem/console_limits.hpp>
#include <idem/limits.hpp>

namespace idem::admin {
namespace {

constexpr std::size_t secret_bytes_max = 256;

struct SessionOrder {
  std::string token;
  std::string code;
};

Read<SessionOrder> parse_session_order(std::string_view body) {
  const auto object = read_object(body, {"token", "code"});
  if (!object) return std::unexpected(object.error());
  const bool has_code = object->find("code") != nullptr;
  if (has_code && object->find("token") != nullptr) {
    return wrong("body", "has a token and a code; send one of them");
  }
  auto text = read_text(*object, has_code ? "code" : "token", secret_bytes_max);
  if (!text) return std::unexpected(std::move(text.error()));
  return has_code ? SessionOrder{{}, std::move(*text)} : SessionOrder{std::move(*text), {}};
}

std::string session_page(const Caller& caller, std::string_view csrf) {
  json::Writer out;
  out.begin_object();
  write_text_or_null(out, "name", caller.name);
  out.member("role", name_of(caller.role));
  out.member("login", caller.login);
  write_text_or_null(out, "csrf", csrf);
  out.end_object();
  return out.take() + "\n";
}

}  // namespace

Task<WireAnswer> SessionApi::answer_to(http::ServerStream& client, const Caller& caller) {
  const auto& head = client.head();
  if (head.origin_form.find('?') != std::string_view::npos) {
    co_return invalid("This path has no parameters.");
  }
  if (head.method == "GET") {
    co_return json_answer(session_page(caller, parts_.login.csrf_of(client, caller)));
  }
  if (!is_json(head)) co_return invalid("Content-Type must be application/json.", 415);
  const bool ends = head.origin_form == "/v1/session/end";
  // The head is gone behind the body.
  std::string no_cookie = ends ? parts_.login.end_session(client) : std::string();
  auto reading = client.read_body(limits::admin_body_bytes_max, parts_.spill);
  const auto body = co_await reading;
  if (!body) co_return to_answer(http::problem_of(body.error()));
  if (ends) {
    WireAnswer answer = json_answer("{}\n");
    answer.headers.push_back({"Set-Cookie", std::move(no_cookie)});
    co_return answer;
  }
  const auto code = parts_.login.make_code(caller);
  if (!code) {
    co_return invalid(
        "Only a token logs a browser in, and this request has none: send Authorization: Bearer. "
        "Where a proxy or a certificate names you, open the console the same way.");
  }
  json::Writer out;
  out.begin_object();
  out.member("code", *code);
  out.member("seconds", std::chrono::seconds(limits::console_code_max).count());
  out.end_object();
  co_return json_answer(out.take() + "\n");
}

Task<WireAnswer> SessionApi::begin(http::ServerStream& client) {
  const auto& head = client.head();
  if (!is_json(head)) co_return invalid("Content-Type must be application/json.", 415);
  const auto browser = parts_.login.browser_of(client);  // The head is gone behind the body.
  auto reading = client.read_body(limits::admin_body_bytes_max, parts_.spill);
  const auto body = co_await reading;
  if (!body) co_return to_answer(http::problem_of(body.error()));
  const auto order = parse_session_order(body->bytes());
  if (!order) co_return invalid(order.error());
  auto looking = parts_.login.look(parts_.loop);
  co_await looking;
  auto begun = parts_.login.begin_session(browser, order->token, order->code);
  if (!begun) co_return std::move(begun.error());
  WireAnswer answer = json_answer(session_page(begun->session.caller, begun->session.csrf));
  answer.headers.push_back({"Set-Cookie", std::move(begun->cookie)});
  co_return answer;
}

}  // namespace idem::admin
