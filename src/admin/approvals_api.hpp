#pragma once

#include "admin/admin.hpp"
#include "admin/approvals/approval.hpp"
#include "admin/jobs/journal_lines.hpp"
#include "admin/login/role.hpp"
#include "admin/order_body.hpp"

#include <functional>
#include <memory>
#include <set>

namespace idem::admin {

/// `/v1/approvals` and the paths under it, and the orders that wait there. Loop's thread only.
class ApprovalsApi {
 public:
  /// Makes the decision of an order that has its approvals (OrderBody::approved). It must look
  /// whether it was made before, and whether what it is about is still as it was seen.
  using Decide = std::function<Task<WireAnswer>(const ApprovalRequest&, const OrderBody&)>;

  /// `parts` outlives it.
  explicit ApprovalsApi(AdminParts& parts) : parts_(parts) {}
  void decide_by(Decide decide) { decide_ = std::move(decide); }

  Task<WireAnswer> answer_to(http::ServerStream& client, const Caller& caller);

  /// Whether a decision has to wait for others than the one who orders it.
  bool must_wait(ApprovalKind kind, const OrderBody& order) const;
  struct Subject {
    ApprovalKind kind{};
    unsigned needs = 2;
    std::string ref{};
    std::string seen{};    ///< What must be the same when the decision is made.
    std::string reason{};  ///< Of the order.
    /// As in ApprovalRequest; none: nothing depends on it.
    std::optional<StoreTime> given_at{};
  };
  /// Notes the order, which then waits. The answer to it: 202.
  Task<WireAnswer> ask(Subject subject, const OrderBody& order);

 private:
  using Fold = std::shared_ptr<ApprovalFold>;
  Task<WireAnswer> list(std::string query);
  Task<WireAnswer> show(std::string id);
  Task<WireAnswer> approve(std::string id, const OrderBody& received);
  Task<WireAnswer> reject(std::string id, const OrderBody& received);
  Task<std::optional<WireAnswer>> give(Fold fold, std::string id, std::string reason,
                                       const OrderBody& received);
  Task<WireAnswer> finish(Fold fold, std::string id, std::string reason, const OrderBody& received);
  Task<WireAnswer> decide(Fold fold, std::string id, const OrderBody& received);
  Task<WireAnswer> end(Fold fold, std::string id, const OrderBody& received, WireAnswer made);
  Task<std::expected<Fold, WireAnswer>> find(std::string id);
  /// Whether this or another process may be making the decision.
  bool is_being_decided(const ApprovalFold& fold, const std::string& id) const;
  StoreTask<Fold> read(std::string id);
  StoreTask<bool> append(Fold fold, std::string id, std::string line);
  Task<WireAnswer> page(Fold fold, int status);
  Task<void> drop_old(StoreTime now);

  AdminParts& parts_;
  Decide decide_;
  std::set<std::string> deciding_;  ///< What this process is deciding now.
};

/// The answer where what an approved order is about has changed since.
WireAnswer changed_since(const OrderBody& order, const std::string& now);

}  // namespace idem::admin
