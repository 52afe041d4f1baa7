// Protocol §3, T37: what is stored of a request that runs later, and who gets it back.
#include "gateway/keyed/async_request.hpp"

#include "gateway/keyed/keyed.hpp"
#include "gateway/keyed/reserve.hpp"
#include "support/temp_dir.hpp"
#include "unit/http/request_parsing.hpp"

#include <gtest/gtest.h>

namespace idem::gateway {
namespace {

using http::test_requests::parse;
using http::test_requests::request;

Secret secret_of(std::string_view word) {
  return secret_from(std::string(word) + std::string(32, '.'));
}

class AsyncRequests : public testing::Test {
 protected:
  AsyncRequests() { identity_.secret = secret_of("identity"); }

  static GatewaySettings settings_of(std::string name, std::vector<std::string> formerly = {}) {
    Route route;
    route.name = std::move(name);
    route.formerly = std::move(formerly);
    route.path = *PathPattern::parse("/v1/payments");
    route.async_keep_fields = {"Authorization"};
    GatewaySettings settings;
    settings.routes = RouteTable({std::move(route)}, Route{});
    settings.scope = {ScopeSource::Kind::fixed, "tenant", "static:tenant"};
    settings.async_secrets = {secret_of("async")};
    return settings;
  }

  /// As the store gives it to a claim: stored by `settings` for the key `k`.
  Claimed claimed(const GatewaySettings& settings, std::string_view key = "k") {
    const std::string key_field = "Idempotency-Key: " + std::string(key);
    const auto parsed = parse(request({key_field, "Authorization: Bearer kept", "Cookie: dropped",
                                       "Accept: */*", "Connection: X-Hop", "X-Hop: 1"},
                                      "POST /v1/payments?x=1 HTTP/1.1"));
    const Route& route = settings.routes.find("POST", "/v1/payments");
    KeyedRequest keyed{"tenant", route.operation("POST", "/v1/payments"), std::string(key),
                       http::ReceivedBody(*spill_), Observation(observer_)};
    EXPECT_TRUE(parsed.complete);
    keyed.body.append("{\"amount\":1}");
    const Reserve reserve =
        make_reserve(parsed.head, keyed.parts(), identity_, settings, route).value();
    Claimed made;
    made.id = reserve.id;
    made.scope = keyed.scope;
    made.operation = keyed.operation;
    made.request =
        request_to_store(parsed.head, keyed.parts(), reserve.id, identity_, settings, route);
    return made;
  }
  std::string why_not(Claimed claimed, const GatewaySettings& settings) {
    const auto read = RestoredRequest::read(claimed, identity_, settings);
    return read ? "" : read.error();
  }

  Identity identity_;
  metrics::Registry registry_{metrics::TenantLabel::off, {}};
  Observing observing_{registry_, [](auto...) {}, false};
  Observer observer_{observing_};
  test::TempDir dir_;
  std::unique_ptr<http::SpillSpace> spill_ =
      std::move(http::SpillSpace::open(dir_.path().string()).value());
};

TEST_F(AsyncRequests, T37_comes_back_without_the_fields_not_to_be_kept) {
  const auto settings = settings_of("pay");
  Claimed made = claimed(settings, "a-raw-key");
  EXPECT_EQ(made.request.find("kept"), std::string::npos);
  EXPECT_EQ(made.request.find("dropped"), std::string::npos);
  EXPECT_EQ(made.request.find("a-raw-key"), std::string::npos);
  const auto read = RestoredRequest::read(made, identity_, settings);
  ASSERT_TRUE(read) << read.error();
  const auto& head = (*read)->head();
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.origin_form, "/v1/payments?x=1");
  EXPECT_EQ((*read)->body(), "{\"amount\":1}");
  std::vector<std::string> names;
  for (const auto& field : head.fields) names.emplace_back(field.name);
  EXPECT_EQ(names, (std::vector<std::string>{"Accept", "Idempotency-Key", "Authorization"}));
  EXPECT_EQ(head.fields.back().value, "Bearer kept");
  EXPECT_EQ(head.fields.back().known, http::FieldName::authorization);
}

TEST_F(AsyncRequests, T37_is_no_other_records_request) {
  const auto settings = settings_of("pay");
  Claimed mine = claimed(settings, "mine");
  Claimed theirs = claimed(settings, "theirs");
  EXPECT_EQ(why_not(mine, settings), "");
  std::swap(mine.request, theirs.request);
  EXPECT_NE(why_not(mine, settings), "");
  Claimed other_scope = claimed(settings, "mine");
  other_scope.id.bytes[0] ^= 1;
  EXPECT_NE(why_not(other_scope, settings), "");
}

TEST_F(AsyncRequests, S02_may_lie_in_a_record_of_an_older_name) {
  const auto before = settings_of("pay");
  const auto after = settings_of("charge", {"pay"});
  const RecordId older = claimed(before).id;
  Claimed made = claimed(after);  // Accepted into the failed record that was found there.
  EXPECT_NE(made.id, older);
  made.id = older;
  made.operation = "pay";
  EXPECT_EQ(why_not(made, after), "");

  identity_.older = {identity_.secret};
  identity_.secret = secret_of("rotated");
  Claimed rotated = claimed(after);
  rotated.id = older;
  EXPECT_EQ(why_not(rotated, after), "");
}

TEST_F(AsyncRequests, T37_needs_the_secret_that_sealed_it) {
  auto settings = settings_of("pay");
  const Claimed made = claimed(settings);
  settings.async_secrets = {secret_of("newer"), secret_of("async")};
  EXPECT_EQ(why_not(made, settings), "");
  settings.async_secrets = {secret_of("newer")};
  EXPECT_NE(why_not(made, settings), "");
  settings.async_secrets = {};
  EXPECT_NE(why_not(made, settings), "");
  const Claimed by_identity = claimed(settings);
  EXPECT_EQ(why_not(by_identity, settings), "");
  settings.async_secrets = {secret_of("newer")};
  EXPECT_EQ(why_not(by_identity, settings), "") << "what was sealed without files still opens";
}

TEST_F(AsyncRequests, S03_is_not_sent_by_a_route_that_is_another_operations) {
  const Claimed made = claimed(settings_of("pay"));
  EXPECT_NE(why_not(made, settings_of("refund")), "");
  EXPECT_EQ(why_not(made, settings_of("charge", {"pay"})), "");
  Claimed broken = made;
  broken.request.pop_back();
  EXPECT_NE(why_not(broken, settings_of("pay")), "");
}

}  // namespace
}  // namespace idem::gateway
