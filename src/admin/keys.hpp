#pragma once

#include "admin/admin.hpp"
#include "admin/keys_query.hpp"
#include "admin/login/role.hpp"
#include "admin/order_body.hpp"

#include <set>

namespace idem::admin {

/// `/v1/keys` and the paths under it. Loop's thread only.
class KeysApi {
 public:
  /// `parts` and `shard` outlive it.
  KeysApi(AdminParts& parts, metrics::Shard& shard) : parts_(parts), shard_(shard) {}

  Task<WireAnswer> answer_to(http::ServerStream& client, const Caller& caller);

 private:
  Task<WireAnswer> list(std::string_view query, Role role);
  Task<WireAnswer> find_by_key(const KeysQuery& query, Census census);
  Task<std::expected<std::string, StoreError>> values_of(const Record& record,
                                                         const KeysQuery& query);
  WireAnswer name_keys(std::string_view body) const;
  std::set<RecordId> ids_of(const std::string& scope, const std::string& operation,
                            const std::string& key) const;
  Task<WireAnswer> show(RecordId id, Role role);
  Task<WireAnswer> resolve(RecordId id, const OrderBody& received);
  Task<WireAnswer> release(RecordId id, const OrderBody& received);
  Task<StoreResult> ask(StoreCall& call);
  Task<WireAnswer> answer_verdict(RecordId id, Resolve::Reply reply);
  void log_decision(std::string_view event, const RecordId& id, const std::string& source,
                    const std::string& reason, const Resolve::Reply& reply);

  AdminParts& parts_;
  metrics::Shard& shard_;
};

}  // namespace idem::admin
