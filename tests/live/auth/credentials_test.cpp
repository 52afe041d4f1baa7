#include <gtest/gtest.h>

#include "support/live.hpp"

/// Checklist line 4: the same tenant and key under another credential or session is found, or not,
/// exactly as the kind of scope says. jwt: and mtls have tests of their own.
namespace idem::test {
namespace {

class Credentials : public Live {
 protected:
  void scope(std::vector<std::string> flags) {
    gateway_.reset();
    auto options = this->options(provider_->address());
    options.store = dir_.path() / "credentials.db";
    options.scope = std::move(flags);
    gateway_ = std::make_unique<Gateway>(options);
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  static Request by(std::string_view credential, std::string_view session = {}) {
    auto request = with(charge("k"), "Authorization", credential);
    return session.empty() ? request : with(request, "Cookie", session);
  }
};

TEST_F(Credentials, V04_a_headers_tenant_is_one_whatever_the_credential) {
  const auto first = ask(by("Bearer one", "session=1"));
  EXPECT_EQ(first.status, 201);
  EXPECT_TRUE(replays(first, ask(by("Bearer two", "session=2"))));
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Credentials, V04_a_static_scope_is_one_whatever_the_credential_or_tenant) {
  scope({"--scope", "static:shop"});
  const auto first = ask(by("Bearer one", "session=1"));
  EXPECT_EQ(first.status, 201);
  EXPECT_TRUE(
      replays(first, ask(with(without(charge("k"), "X-Tenant-Id"), "Cookie", "session=2"))));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Credentials, V04_a_credential_is_its_own_scope_whatever_the_tenant_header_or_session) {
  scope({"--scope", "authorization"});
  const auto first = ask(by("Bearer sk_1", "session=1"));
  EXPECT_EQ(first.status, 201);
  EXPECT_TRUE(replays(first, ask(by("bearer sk_1", "session=2"))));
  const auto claimed = with(without(by("Bearer sk_1"), "X-Tenant-Id"), "X-Tenant-Id", "globex");
  EXPECT_TRUE(replays(first, ask(claimed)));
  const auto other = ask(by("Bearer sk_2", "session=1"));
  EXPECT_EQ(other.status, 201);
  EXPECT_FALSE(other.get("Idempotent-Replayed"));
  EXPECT_EQ(ask(by("Basic sk_1")).get("Idempotent-Replayed"), std::nullopt) << "another scheme";
  EXPECT_EQ(effects("k"), 3);
}

TEST_F(Credentials, S09_two_credentials_are_none) {
  scope({"--scope", "authorization"});
  EXPECT_TRUE(
      is_problem(ask(with(by("Bearer a"), "Authorization", "Bearer a")), 401, "scope_missing"));
  EXPECT_EQ(effects("k"), 0);
}

// The upstream would see an anonymous request under a scope that came from the credential.
TEST_F(Credentials, P14_connection_cannot_remove_the_credential) {
  scope({"--scope", "authorization"});
  EXPECT_TRUE(
      is_problem(ask(with(by("Bearer a"), "Connection", "authorization")), 400, "bad_request"));
  EXPECT_EQ(effects("k"), 0);
}

// A scope is shown to operators and is in the store.
TEST_F(Credentials, T38_a_credential_is_not_read_as_a_tenants_name) {
  for (const auto* name : {"Authorization", "cookie", "Proxy-Authorization"}) {
    GatewayOptions options{.upstream = unused_address(), .store = dir_.path() / "no.db"};
    options.scope = {"--scope", "header:" + std::string(name), "--trust-scope-header"};
    Gateway gateway(options);
    EXPECT_FALSE(gateway.running()) << name;
    EXPECT_EQ(gateway.process().exit_code(), 2);
  }
}

}  // namespace
}  // namespace idem::test
