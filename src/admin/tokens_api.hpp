#pragma once

#include "admin/admin.hpp"
#include "admin/order_body.hpp"
#include "loop/offload.hpp"

namespace idem::admin {

/// `/v1/tokens` and the paths under it. Loop's thread only; files are written on another one.
class TokensApi {
 public:
  /// Both outlive it.
  TokensApi(AdminParts& parts, Offload& offload) : parts_(parts), offload_(offload) {}

  Task<WireAnswer> answer_to(http::ServerStream& client, const Caller& caller);

 private:
  Task<WireAnswer> list();
  Task<WireAnswer> make(const OrderBody& received);
  Task<WireAnswer> revoke(std::string name, const OrderBody& received);

  AdminParts& parts_;
  Offload& offload_;
};

}  // namespace idem::admin
