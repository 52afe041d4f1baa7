#include "admin/order_body.hpp"

#include "admin/order_reading.hpp"
#include "admin/replies.hpp"

#include <idem/limits.hpp>

namespace idem::admin {

Task<std::expected<OrderBody, WireAnswer>> read_order(AdminParts& parts, http::ServerStream& client,
                                                      const Caller& caller) {
  if (!is_json(client.head())) {
    co_return std::unexpected(invalid("Content-Type must be application/json.", 415));
  }
  auto source = source_of(client.head(), caller);
  if (!source) {
    co_return std::unexpected(
        invalid("Idem-Operator must be one name of 1 to 64 visible characters."));
  }
  auto body = co_await client.read_body(limits::admin_body_bytes_max, parts.spill);
  if (!body) co_return std::unexpected(to_answer(http::problem_of(body.error())));
  if (!parts.login.still_has(caller)) {
    co_return std::unexpected(to_answer(
        {.code = ProblemCode::login_required,
         .detail = "The token was revoked while the order was coming. Nothing was done."}));
  }
  auto decider = decided_by(std::move(*source), body->bytes());
  if (!decider) co_return std::unexpected(invalid(std::move(decider.error())));
  co_return OrderBody{std::move(*body), std::move(*decider)};
}

}  // namespace idem::admin
