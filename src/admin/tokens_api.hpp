#pragma once

#include "admin/admin.hpp"
#include "admin/login/login.hpp"
#include "loop/offload.hpp"

namespace idem::admin {

/// `/v1/tokens` and the paths under it. Loop's thread only; files are written on another one.
class TokensApi {
 public:
  /// All outlive it.
  TokensApi(const AdminParts& parts, const Login& login, Offload& offload)
      : parts_(parts), login_(login), offload_(offload) {}

  Task<WireAnswer> answer_to(http::ServerStream& client, const Caller& caller);

 private:
  Task<WireAnswer> list();
  Task<WireAnswer> make(std::string_view body, const std::string& source);
  Task<WireAnswer> revoke(std::string name, std::string_view body, const std::string& source);

  const AdminParts& parts_;
  const Login& login_;
  Offload& offload_;
};

}  // namespace idem::admin
