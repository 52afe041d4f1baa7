#include <gtest/gtest.h>

#include "support/scripted_live.hpp"

/// A scope header counts only from the proxies that are listed (protocol.md §9).
namespace idem::test {
namespace {

class TrustedProxy : public Scripted {
 protected:
  static std::vector<std::string> by_header() { return {"--scope", "header:X-Tenant-Id"}; }

  void trust(std::vector<std::string> networks, std::string listen = "127.0.0.1:0") {
    GatewayOptions options{.listen = std::move(listen), .scope = by_header()};
    for (auto& network : networks) {
      options.scope.insert(options.scope.end(), {"--trusted-proxy", std::move(network)});
    }
    start(&ScriptedUpstream::answer_all, {}, std::move(options));
  }
  Response ask_from(std::string_view from, const Request& request) const {
    Connection connection(gateway_->address(), from);
    return connection.exchange(request);
  }
};

TEST_F(TrustedProxy, S09_only_a_listed_peers_header_counts) {
  trust({"127.0.5.0/24", "127.0.9.1/32"});
  for (const auto* from : {"127.0.0.1", "127.0.4.255", "127.0.6.0", "127.0.9.2"}) {
    EXPECT_TRUE(is_problem(ask_from(from, charge("k")), 401, "scope_missing")) << from;
  }
  EXPECT_EQ(upstream_->requests(), 0);
  EXPECT_EQ(ask_from("127.0.5.7", charge("k")).status, 200);
  EXPECT_EQ(ask_from("127.0.9.1", charge("k")).get("Idempotent-Replayed"), "true");
  EXPECT_TRUE(is_problem(ask_from("127.0.0.1", charge("k")), 401, "scope_missing"))
      << "a stored answer is not for who only claims to be its tenant";
  EXPECT_EQ(upstream_->requests(), 1);
}

TEST_F(TrustedProxy, S09_fields_that_name_another_peer_change_nothing) {
  trust({"127.0.5.0/24"});
  const auto claims =
      with(with(with(charge("k"), "X-Forwarded-For", "127.0.5.1"), "Forwarded", "for=127.0.5.1"),
           "X-Real-IP", "127.0.5.1");
  EXPECT_TRUE(is_problem(ask_from("127.0.0.1", claims), 401, "scope_missing"));
}

// The upstream believes the same header, and an unkeyed request would carry it there.
TEST_F(TrustedProxy, S09_an_unbelieved_header_does_not_reach_the_upstream) {
  trust({"127.0.5.0/24"});
  const auto unkeyed = with(Request{.method = "GET", .target = "/me"}, "x-TENANT-id", "acme");
  EXPECT_EQ(ask_from("127.0.0.1", unkeyed).status, 200);
  EXPECT_EQ(ask_from("127.0.5.1", with(unkeyed, "X-Seen", "believed")).status, 200);
  std::string seen;
  for (const auto& bytes : upstream_->received()) seen += bytes;
  const auto second = seen.find("X-Seen");
  ASSERT_NE(second, std::string::npos);
  const auto from = seen.rfind("GET /me", second);
  EXPECT_EQ(seen.substr(0, from).find("acme"), std::string::npos) << seen;
  EXPECT_NE(seen.substr(from).find("x-TENANT-id: acme"), std::string::npos) << seen;
}

// Many servers read X_Tenant_Id and X-Tenant-Id as one name.
TEST_F(TrustedProxy, T33_a_second_tenant_in_disguise_is_none) {
  trust({"127.0.5.0/24"});
  for (const auto* name : {"X_Tenant_Id", "x-tenant_id", "XTenantId", "X-Tenant-Id."}) {
    EXPECT_TRUE(
        is_problem(ask_from("127.0.5.1", with(charge("k"), name, "globex")), 401, "scope_missing"))
        << name;
    const auto only = with(without(charge("k"), "X-Tenant-Id"), name, "globex");
    EXPECT_TRUE(is_problem(ask_from("127.0.5.1", only), 401, "scope_missing")) << name;
    const auto unkeyed = with(Request{.method = "GET", .target = "/me"}, name, "globex");
    EXPECT_EQ(ask_from("127.0.0.1", unkeyed).status, 200) << name;
  }
  for (const auto& bytes : upstream_->received()) {
    EXPECT_EQ(bytes.find("globex"), std::string::npos) << bytes;
  }
}

TEST_F(TrustedProxy, S09_an_ipv4_client_of_an_ipv6_listener_is_the_same_peer) {
  trust({"127.0.5.0/24"}, "[::]:0");
  const auto colon = gateway_->address().rfind(':');
  const std::string port = gateway_->address().substr(colon);
  Connection stranger("127.0.0.1" + port);
  EXPECT_TRUE(is_problem(stranger.exchange(charge("k")), 401, "scope_missing"));
  Connection proxy("127.0.0.1" + port, "127.0.5.1");
  EXPECT_EQ(proxy.exchange(charge("k")).status, 200);
}

TEST_F(TrustedProxy, S09_invalid_settings_keep_the_gateway_from_starting) {
  const std::vector<std::vector<std::string>> wrong{
      {},
      {"--trusted-proxy", "0.0.0.0/0"},
      {"--trusted-proxy", "10.0.0.1/8"},
      {"--trusted-proxy", "proxy.test"},
      {"--trusted-proxy", "10.0.0.0/8", "--trust-scope-header"}};
  for (const auto& flags : wrong) {
    GatewayOptions options{.upstream = unused_address(), .store = dir_.path() / "no.db"};
    options.scope = by_header();
    options.scope.insert(options.scope.end(), flags.begin(), flags.end());
    Gateway gateway(options);
    EXPECT_FALSE(gateway.running());
    EXPECT_EQ(gateway.process().exit_code(), 2);
    EXPECT_NE(gateway.process().output().find("--trusted-proxy"), std::string::npos)
        << gateway.process().output();
  }
}

}  // namespace
}  // namespace idem::test
