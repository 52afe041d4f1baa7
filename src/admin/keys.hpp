#pragma once

#include "admin/admin.hpp"
#include "admin/approvals_api.hpp"
#include "admin/keys_query.hpp"
#include "admin/login/role.hpp"
#include "admin/order_body.hpp"
#include "admin/shared_census.hpp"

#include <set>

namespace idem::admin {

/// `/v1/keys` and the paths under it. Loop's thread only.
class KeysApi {
 public:
  /// All outlive it.
  KeysApi(AdminParts& parts, metrics::Shard& shard, ApprovalsApi& approvals, SharedCensus& census)
      : parts_(parts), shard_(shard), approvals_(approvals), census_(census) {}

  Task<WireAnswer> answer_to(http::ServerStream& client, const Caller& caller);
  /// An order that has its approvals.
  Task<WireAnswer> decide(const ApprovalRequest& request, const OrderBody& order);

 private:
  Task<WireAnswer> list(std::string_view query, Role role);
  Task<WireAnswer> find_by_key(const KeysQuery& query, Census census);
  Task<WireAnswer> find_by_value(const KeysQuery& query, Census census);
  Task<std::expected<std::string, StoreError>> values_of(const Record& record,
                                                         const KeysQuery& query);
  WireAnswer name_keys(std::string_view body) const;
  std::set<RecordId> ids_of(const std::string& scope, const std::string& operation,
                            const std::string& key) const;
  Task<WireAnswer> show(RecordId id, Role role);
  Task<WireAnswer> resolve(RecordId id, const OrderBody& received);
  Task<WireAnswer> release(RecordId id, const OrderBody& received);
  /// What an order found.
  struct Seen {
    std::optional<Record> record;
    StoreTime now;     ///< Before the record was read.
    std::string note;  ///< Of foreseen().
    std::string reason;
  };
  /// What answers in place of the decision: it waits for approvals, was made before, or what was
  /// seen has changed. None: decide.
  Task<std::optional<WireAnswer>> in_place_of(ApprovalKind kind, RecordId id, Seen as_it_was,
                                              const OrderBody& received);
  /// The answer, if the evidence says that the approved order was carried out; or that this is not
  /// known.
  Task<std::optional<WireAnswer>> made_before(RecordId id, const OrderBody& received);
  Task<StoreResult> ask(StoreCall& call);
  Task<WireAnswer> answer_verdict(RecordId id, Resolve::Reply reply, const OrderBody& received);
  void log_decision(std::string_view event, const RecordId& id, const std::string& source,
                    const std::string& reason, const Resolve::Reply& reply);

  AdminParts& parts_;
  metrics::Shard& shard_;
  ApprovalsApi& approvals_;
  SharedCensus& census_;
};

}  // namespace idem::admin
