#include "admin/order_body.hpp"

#include "admin/order_reading.hpp"
#include "admin/replies.hpp"

#include <idem/limits.hpp>

namespace idem::admin {
namespace {

AuditEntry signer_of(const http::ServerStream& client, const Caller& caller) {
  AuditEntry signer;
  signer.role = std::string(name_of(caller.role));
  signer.login = std::string(caller.login);
  if (const auto& peer = client.peer_address()) signer.peer = http::text_of(*peer);
  return signer;
}

}  // namespace

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
  AuditEntry signer = signer_of(client, caller);
  auto body = co_await client.read_body(limits::admin_body_bytes_max, parts.spill);
  if (!body) co_return std::unexpected(to_answer(http::problem_of(body.error())));
  auto looking = parts.login.look(parts.loop);
  co_await looking;
  if (!parts.login.still_has(caller)) {
    co_return std::unexpected(to_answer(
        {.code = ProblemCode::login_required,
         .detail = "The token was revoked while the order was coming. Nothing was done."}));
  }
  auto decider = decided_by(std::move(*source), body->bytes());
  if (!decider) co_return std::unexpected(invalid(std::move(decider.error())));
  const std::size_t name = decider->find(':') + 1;  // Behind operator_source.
  signer.who = decider->substr(name);
  co_return OrderBody{std::string(body->bytes()), std::move(*decider), std::move(signer)};
}

}  // namespace idem::admin
