#pragma once

#include "admin/admin.hpp"
#include "admin/order_body.hpp"
#include "loop/offload.hpp"

namespace idem::admin {

/// `/v1/settings/changes` and `/v1/settings/reload`. Loop's thread only; the file is read on
/// another one.
class SettingsApi {
 public:
  /// Both outlive it.
  SettingsApi(AdminParts& parts, Offload& offload) : parts_(parts), offload_(offload) {}

  Task<WireAnswer> answer_to(http::ServerStream& client, const Caller& caller);

 private:
  Task<WireAnswer> changes();
  Task<WireAnswer> reload(const OrderBody& received);

  AdminParts& parts_;
  Offload& offload_;
};

}  // namespace idem::admin
