#include "core/record/stored_request.hpp"
#include "core/bytes/seal.hpp"
#include "gateway/background/dispatch_places.hpp"
#include "gateway/keyed/async_request.hpp"
#include "gateway/keyed/lookup_limit.hpp"

#include <idem/worker_limits.hpp>

#include <gtest/gtest.h>

namespace idem::test {
namespace {

using namespace std::chrono_literals;

Secret secret_of(std::string_view word) {
  return secret_from(std::string(word) + std::string(32, '.'));
}

struct Parts {
  std::string body{std::string("a\0\r\n\xff{}", 7)};
  std::string sealed{"sealed\0part", 11};
  StoredRequest request{.minor_version = 0,
                        .method = "POST",
                        .target = "/v1/payments?a=%00&b",
                        .host = "api.example",
                        .fields = {{"Content-Type", "application/json"}, {"X-Empty", ""}},
                        .sealed_for = {{1, 2, 3}},
                        .sealed = sealed,
                        .body = body};
};

TEST(StoredRequest, S14_every_byte_comes_back) {
  const Parts parts;
  const std::string bytes = encode_request(parts.request);
  const auto read = decode_request(bytes);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->minor_version, 0);
  EXPECT_EQ(read->method, parts.request.method);
  EXPECT_EQ(read->target, parts.request.target);
  EXPECT_EQ(read->host, parts.request.host);
  EXPECT_EQ(read->fields, parts.request.fields);
  EXPECT_EQ(read->sealed_for, parts.request.sealed_for);
  EXPECT_EQ(read->sealed, parts.sealed);
  EXPECT_EQ(read->body, parts.body);
}

TEST(StoredRequest, T30_cut_longer_or_other_versions_bytes_are_refused) {
  const Parts parts;
  const std::string bytes = encode_request(parts.request);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_request(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_request(bytes + "x"));
  std::string newer = bytes;
  newer.front() = 2;
  EXPECT_FALSE(decode_request(newer));
  const std::string secrets = encode_secrets({.key = "k", .fields = {{"Cookie", "a=b"}}});
  const auto read = decode_secrets(secrets);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->key, "k");
  EXPECT_EQ(read->fields.front().second, "a=b");
  for (std::size_t size = 0; size < secrets.size(); ++size) {
    EXPECT_FALSE(decode_secrets(std::string_view(secrets).substr(0, size))) << size;
  }
}

TEST(Seal, T37_only_its_secret_opens_it_and_only_with_its_binding) {
  const std::vector<Secret> secrets{secret_of("new"), secret_of("old")};
  const std::string sealed = seal(secrets[1], "Bearer canary", "record 1");
  EXPECT_EQ(sealed.find("canary"), std::string::npos);
  EXPECT_EQ(unseal(secrets, sealed, "record 1"), "Bearer canary") << "an older one still opens it";
  EXPECT_FALSE(unseal(secrets, sealed, "record 2"));
  EXPECT_FALSE(unseal(std::span(secrets).first(1), sealed, "record 1"));
  EXPECT_NE(sealed, seal(secrets[1], "Bearer canary", "record 1")) << "never twice the same";
  EXPECT_EQ(unseal(secrets, seal(secrets[0], "", ""), ""), "");
}

TEST(Seal, T37_no_byte_of_it_may_change) {
  const std::vector<Secret> secrets{secret_of("s")};
  const std::string sealed = seal(secrets[0], "Bearer canary", "record");
  for (std::size_t at = 0; at < sealed.size(); ++at) {
    std::string changed = sealed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(unseal(secrets, changed, "record")) << at;
    EXPECT_FALSE(unseal(secrets, std::string_view(sealed).substr(0, at), "record")) << at;
  }
}

TEST(Seal, T37_the_seal_is_bound_to_all_of_its_request) {
  const Parts parts;
  const auto changed = [&](auto change) {
    StoredRequest other = parts.request;
    change(other);
    return bound_to(other) != bound_to(parts.request);
  };
  EXPECT_TRUE(changed([](auto& r) { r.sealed_for.bytes[15] = 1; }));
  EXPECT_TRUE(changed([](auto& r) { r.method = "PUT"; }));
  EXPECT_TRUE(changed([](auto& r) { r.target = "/v1/payouts"; }));
  EXPECT_TRUE(changed([](auto& r) { r.host = "evil.example"; }));
  EXPECT_TRUE(changed([](auto& r) { r.fields.pop_back(); }));
  EXPECT_TRUE(changed([](auto& r) { r.body = "{}"; }));
  EXPECT_FALSE(changed([](auto& r) { r.sealed = "other"; }));
}

TEST(AsyncRequest, T37_these_fields_count_as_credentials) {
  gateway::GatewaySettings settings;
  settings.scope = {gateway::ScopeSource::Kind::header, "X-Tenant-Id", "header:X-Tenant-Id"};
  for (const auto* name : {"Authorization",
                           "authorization",
                           "Proxy-Authorization",
                           "Cookie",
                           "X-Tenant-Id",
                           "x_tenant_id",
                           "X-Api-Key",
                           "x_api_key",
                           "ApiKey",
                           "X-Auth",
                           "X-Auth-Token",
                           "X-CSRF-Token",
                           "Client-Secret",
                           "X-Session-Id",
                           "X-JWT-Assertion",
                           "X-Amz-Security-Token",
                           "Ocp-Apim-Subscription-Key",
                           "X-Functions-Key",
                           "X_Access_Key",
                           "X-Bearer",
                           "X-Otp",
                           "X-Pin",
                           "X-Saml-Assertion",
                           "X-Forwarded-Client-Cert",
                           "X-Amz-Signature",
                           "Signature"}) {
    EXPECT_TRUE(gateway::is_credential(name, settings)) << name;
  }
  for (const auto* name :
       {"Content-Type", "Accept", "X-Author", "X-Request-Id", "Traceparent", "User-Agent",
        "Content-Encoding", "X-Tenant", "X-Key-Count", "X-Monkey", "X-Pinned", "Shipping-Method"}) {
    EXPECT_FALSE(gateway::is_credential(name, settings)) << name;
  }
}

TEST(LookupLimit, S09_each_scope_has_its_own_bucket_that_fills_again) {
  gateway::LookupLimit limit;
  MonotonicTime now{1h};
  for (int i = 0; i < static_cast<int>(limits::lookups_at_once); ++i) {
    ASSERT_FALSE(limit.take("a", now)) << i;
  }
  EXPECT_TRUE(limit.take("a", now));
  EXPECT_FALSE(limit.take("b", now));
  now += 1s;
  int taken = 0;
  while (!limit.take("a", now)) ++taken;
  EXPECT_EQ(taken, static_cast<int>(limits::lookups_per_second));
}

TEST(LookupLimit, S09_scopes_are_bounded_and_rested_ones_make_room) {
  gateway::LookupLimit limit;
  MonotonicTime now{1h};
  for (std::size_t i = 0; i < limits::lookup_scopes_max; ++i) {
    ASSERT_FALSE(limit.take(std::to_string(i), now));
  }
  EXPECT_TRUE(limit.take("one more", now));
  EXPECT_FALSE(limit.take("7", now));
  now += 2s;
  EXPECT_FALSE(limit.take("one more", now));
}

TEST(DispatchPlaces, S03_neither_a_route_nor_a_tenant_uses_more_than_its_own) {
  gateway::DispatchPlaces places;
  gateway::Route route;
  route.name = "payments";
  route.async_running_max = 3;
  route.async_tenant_max = 2;
  gateway::Route other = route;
  other.name = "refunds";
  EXPECT_TRUE(places.take(route, "a"));
  EXPECT_TRUE(places.take(route, "a"));
  EXPECT_FALSE(places.take(route, "a"));
  EXPECT_TRUE(places.take(route, "b"));
  EXPECT_FALSE(places.take(route, "c")) << "the route's third was the last";
  EXPECT_TRUE(places.take(other, "a"));
  EXPECT_EQ(places.taken(), 4U);
  places.give_back(route, "a");
  EXPECT_TRUE(places.take(route, "c"));
}

TEST(DispatchPlaces, S03_each_release_makes_the_rest_longer_until_it_ends) {
  gateway::DispatchPlaces places;
  const RecordId id{{7}};
  EXPECT_EQ(places.rest(id, 0), Millis(limits::async_rest_first));
  places.released(id);
  EXPECT_EQ(places.rest(id, 0), 2 * Millis(limits::async_rest_first));
  EXPECT_EQ(places.rest(id, 1), Millis(limits::async_rest_first)) << "half of it is chance";
  for (int i = 0; i < 50; ++i) places.released(id);
  EXPECT_EQ(places.rest(id, 0), Millis(limits::async_rest_max));
  EXPECT_EQ(places.rest({{8}}, 0), Millis(limits::async_rest_first));
  places.ended(id);
  EXPECT_EQ(places.rest(id, 0), Millis(limits::async_rest_first));
}

}  // namespace
}  // namespace idem::test
