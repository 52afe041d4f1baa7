#pragma once

#include "admin/admin.hpp"
#include "admin/login/role.hpp"
#include "admin/order_body.hpp"
#include "loop/offload.hpp"

#include <idem/outbox.hpp>

namespace idem::admin {

/// `/v1/outbox`, `/v1/dlq` and the paths under them. Loop's thread only; calls to the database run
/// on another one.
class OutboxApi {
 public:
  /// `parts` outlives it.
  OutboxApi(AdminParts& parts, Offload& offload);

  Task<WireAnswer> answer_to(http::ServerStream& client, const Caller& caller);

  /// For the metrics; none: there is no outbox, or the database does not answer.
  Task<std::optional<std::vector<MessageCount>>> count();

 private:
  Task<WireAnswer> list(std::string_view query, std::optional<MessageState> of);
  Task<WireAnswer> show(std::string id, Role role);
  Task<WireAnswer> order(http::ServerStream& client, std::string what, const Caller& caller);
  Task<WireAnswer> retry(std::string id, const OrderBody& received);
  /// A call of Outbox that carries out an order about dead letters.
  template <class Order>
  using Verb = Outbox::Result<std::vector<Ordered>> (Outbox::*)(const Order&);
  template <class Order>
  Task<WireAnswer> decide(std::string_view event, std::expected<Order, std::string> order,
                          Verb<Order> verb, const OrderBody& received);
  Task<Outbox::Result<std::optional<StoredMessage>>> find(std::string id);
  void log_order(std::string_view event, const std::string& source, const std::string& reason,
                 const std::vector<Ordered>& ordered);

  AdminParts& parts_;
  Offload& offload_;
  Transactions* transactions_;
};

}  // namespace idem::admin
