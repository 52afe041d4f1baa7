#include <gtest/gtest.h>

#include "support/live.hpp"

namespace idem::test {
namespace {

using Scope = Live;

TEST_F(Scope, S09_without_one_nothing_runs_and_nothing_is_stored) {
  const auto nobody = without(charge("k"), "X-Tenant-Id");
  const Request bad[] = {nobody,
                         with(nobody, "X-Tenant-Id", ""),
                         with(charge("k"), "X-Tenant-Id", "globex"),
                         with(charge("k"), "x-tenant-id", "acme"),
                         with(nobody, "X-Tenant-Id", "acme, globex"),
                         with(nobody, "X-Tenant-Id", "acme,"),
                         with(nobody, "X-Tenant-Id", ",acme")};
  for (const auto& request : bad) {
    const auto answer = ask(request);
    EXPECT_TRUE(is_problem(answer, 401, "scope_missing"));
    EXPECT_EQ(json_text(answer.body, "retry"), "never");
  }
  EXPECT_EQ(provider_->ledger().arrivals, 0);
  EXPECT_FALSE(ask(charge("k")).get("Idempotent-Replayed"));
}

TEST_F(Scope, T33_no_answer_crosses_scopes_whatever_their_names) {
  const char* names[] = {"acme", "ACME", "acme ", "ac", "me", "acme\x7f", "a/c", "a\"c"};
  int runs = 0;
  for (const auto* name : names) {
    const auto request = with(without(charge("k"), "X-Tenant-Id"), "X-Tenant-Id", name);
    const auto answer = ask(request);
    if (answer.get("Idempotent-Replayed")) {
      EXPECT_STREQ(name, "acme ") << "only white space around a value may vanish";
    }
    runs += answer.status == 201 && !answer.get("Idempotent-Replayed") ? 1 : 0;
  }
  EXPECT_EQ(provider_->ledger().effects, runs);
}

TEST_F(Scope, T35_scope_and_key_cannot_be_joined_into_another) {
  const auto request = [](std::string_view scope, std::string_view key) {
    return with(without(charge(key), "X-Tenant-Id"), "X-Tenant-Id", scope);
  };
  EXPECT_FALSE(ask(request("a", "bc")).get("Idempotent-Replayed"));
  EXPECT_FALSE(ask(request("ab", "c")).get("Idempotent-Replayed"));
  EXPECT_FALSE(ask(request("a:b", "c")).get("Idempotent-Replayed"));
  EXPECT_FALSE(ask(request("a", "b:c")).get("Idempotent-Replayed"));
  EXPECT_EQ(provider_->ledger().effects, 4);
}

// A scope that changes between a request and its retry hides the record, and the retry runs again.
TEST_F(Scope, S09_only_a_static_credential_is_a_scope) {
  auto options = this->options(provider_->address());
  options.store = dir_.path() / "credential.db";
  options.scope = {"--scope", "authorization"};
  const Gateway gateway(options);
  const auto by = [&](std::string_view credential) {
    auto request = with(without(charge("k"), "X-Tenant-Id"), "Authorization", credential);
    return send_once(gateway.address(), request);
  };
  for (const auto* changing :
       {"AWS4-HMAC-SHA256 Credential=a, Signature=b", "Digest username=a",
        "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln",
        // The same with a blank, a line break and CRLF before or behind its brace.
        "Bearer IHsiYWxnIjoiSFMyNTYifQ.eyJzdWIiOiJhIn0.c2ln",
        "Bearer ewogImFsZyI6ICJIUzI1NiIKfQ.eyJzdWIiOiJhIn0.c2ln",
        "Bearer DQp7ImFsZyI6IkhTMjU2In0NCg.eyJzdWIiOiJhIn0.c2ln",
        "Bearer eyAiYWxnIjoiUlNBLU9BRVAifQ.a.b.c.d", "DPoP abc", "Basic", "x"}) {
    EXPECT_TRUE(is_problem(by(changing), 401, "scope_missing")) << changing;
  }
  EXPECT_EQ(by("Basic YTpi").status, 201);
  EXPECT_EQ(by("basic  YTpi").get("Idempotent-Replayed"), "true");
  EXPECT_FALSE(by("Bearer sk_live_1").get("Idempotent-Replayed"));
  EXPECT_FALSE(by("Bearer sk_live_2").get("Idempotent-Replayed"));
  EXPECT_EQ(by("Bearer eyJ.opaque.token").status, 201) << "its beginning is no header";
  EXPECT_EQ(effects("k"), 4);
}

TEST_F(Scope, S08_is_asked_for_only_where_a_key_counts) {
  EXPECT_EQ(ask({.method = "GET", .target = "/echo"}).status, 200);
  EXPECT_EQ(ask({.method = "PUT", .target = "/charges", .body = "{}"}).status, 201);
}

}  // namespace
}  // namespace idem::test
