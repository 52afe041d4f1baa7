#pragma once

#include "admin/admin.hpp"
#include "admin/approvals_api.hpp"
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
  OutboxApi(AdminParts& parts, Offload& offload, ApprovalsApi& approvals);

  Task<WireAnswer> answer_to(http::ServerStream& client, const Caller& caller);
  /// An order to discard that has its approvals.
  Task<WireAnswer> decide(const ApprovalRequest& request, const OrderBody& order);

  /// For the metrics; none: there is no outbox, or the database does not answer.
  Task<std::optional<std::vector<MessageCount>>> count();

 private:
  Task<WireAnswer> list(std::string_view query, std::optional<MessageState> of);
  Task<WireAnswer> show(std::string id, Role role);
  Task<WireAnswer> order(http::ServerStream& client, std::string what, const Caller& caller);
  Task<WireAnswer> discard(const OrderBody& received);
  /// What answers in place of the decision; none: decide.
  Task<std::optional<WireAnswer>> in_place_of(const Discard& order, const OrderBody& received);
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
  ApprovalsApi& approvals_;
  Transactions* transactions_;
};

}  // namespace idem::admin
