#include <gtest/gtest.h>

#include <algorithm>

#include "support/json.hpp"
#include "support/live.hpp"

// The judge is tried before the accused: a provider that cannot see a duplicate proves nothing.

namespace idem::test {
namespace {

Response get(const Provider& provider, const std::string& target) {
  return send_once(provider.address(), {.method = "GET", .target = target});
}

Request refund(std::string_view key, std::string_view body) {
  auto request = charge(key, {}, body);
  request.target = "/refunds";
  return request;
}

TEST(TheProvider, counts_every_duplicate_that_reaches_it) {
  const Provider provider;
  ASSERT_TRUE(provider.running());
  const auto first = send_once(provider.address(), charge("k"));
  const auto second = send_once(provider.address(), charge("k"));
  EXPECT_EQ(first.status, 201);
  EXPECT_NE(first.body, second.body) << "the nonce must tell executions apart";
  EXPECT_EQ(provider.effects("k"), 2);
  EXPECT_EQ(provider.ledger().effects, 2);
}

TEST(TheProvider, counts_arrivals_and_effects_apart) {
  const Provider provider;
  send_once(provider.address(), charge("refused", "refuse=429"));
  send_once(provider.address(), charge("dropped", "drop-before"));
  send_once(provider.address(), charge("charged", "drop-after"));
  const auto ledger = provider.ledger();
  EXPECT_EQ(ledger.effects, 1);
  EXPECT_EQ(ledger.arrivals, 3);
  EXPECT_EQ(ledger.keys.at("charged").effects, 1);
  EXPECT_EQ(ledger.keys.at("refused").arrivals, 1);
}

TEST(TheProvider, breaks_answers_as_asked) {
  const Provider provider;
  const auto ask = [&](std::string_view faults) {
    return send_once(provider.address(), charge("k", faults));
  };
  EXPECT_EQ(ask("drop-after").trouble, "closed");
  EXPECT_EQ(ask("truncate").trouble, "cut: closed");
  EXPECT_EQ(ask("truncate-chunked").trouble, "cut: closed");
  EXPECT_EQ(ask("garbage").trouble, "no HTTP/1.1 answer");
  EXPECT_EQ(ask("interim").interim, std::vector<int>{103});
  EXPECT_EQ(ask("size=3000000").body.size(), 3'000'000U);
  EXPECT_EQ(ask("chunked").get("Transfer-Encoding"), "chunked");
  EXPECT_EQ(ask("until-close").status, 201);
  EXPECT_EQ(ask("misspelt").status, 418);
  EXPECT_EQ(provider.effects("k"), 8);
}

TEST(TheProvider, holds_requests_until_they_are_released) {
  const Provider provider;
  Connection held(provider.address());
  Connection gated(provider.address());
  held.send(charge("after", "hold=h"));
  gated.send(charge("before", "gate-before=h"));
  ASSERT_TRUE(provider.wait_held("h", 2));
  EXPECT_EQ(provider.effects("after"), 1);
  EXPECT_EQ(provider.effects("before"), 0);
  provider.release("h");
  EXPECT_EQ(held.read_response().status, 201);
  EXPECT_EQ(gated.read_response().status, 201);
  EXPECT_EQ(provider.effects("before"), 1);
}

TEST(TheProvider, answers_with_the_charges_of_a_key) {
  const Provider provider;
  EXPECT_EQ(get(provider, "/charges?key=k").body, R"({"charges":[]})");
  const auto first = send_once(provider.address(), charge("k"));
  EXPECT_EQ(send_once(provider.address(), charge("other")).status, 201);
  EXPECT_EQ(get(provider, "/charges?key=k").body, R"({"charges":[)" + first.body + "]}");
  const auto second = send_once(provider.address(), charge("k"));
  EXPECT_EQ(get(provider, "/charges?key=k").body,
            R"({"charges":[)" + first.body + "," + second.body + "]}");
  EXPECT_EQ(send_once(provider.address(), charge("lost", "drop-after")).trouble, "closed");
  const auto lost = parse_json(get(provider, "/charges?key=lost").body);
  ASSERT_TRUE(lost);
  EXPECT_EQ((*lost)["charges"].items.size(), 1U) << "the answer was lost, the charge was not";
  EXPECT_EQ(get(provider, "/charges").status, 404);
}

TEST(TheProvider, finds_a_charge_by_the_reference_of_its_body) {
  const Provider provider;
  const auto body = R"({"note":"reference","of":{"reference":"inner"},"reference":"order 7"})";
  const auto made = send_once(provider.address(), charge("k", {}, body));
  EXPECT_EQ(get(provider, "/charges?reference=order%207").body,
            R"({"charges":[)" + made.body + "]}");
  EXPECT_EQ(get(provider, "/charges?reference=inner").body, R"({"charges":[]})");
  EXPECT_EQ(get(provider, "/charges?key=k&reference=other").body, R"({"charges":[]})");
  send_once(provider.address(), charge("n", {}, R"({"reference":42})"));
  const auto numbered = parse_json(get(provider, "/charges?reference=42").body);
  ASSERT_TRUE(numbered);
  EXPECT_EQ((*numbered)["charges"].items.size(), 1U);
}

TEST(TheProvider, refunds_are_charges_of_their_own_list) {
  const Provider provider;
  const auto made = send_once(provider.address(), refund("k", R"({"charge":"ch_1","amount":5})"));
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(provider.effects("k"), 1);
  EXPECT_EQ(get(provider, "/refunds?key=k").body, R"({"refunds":[)" + made.body + "]}");
  EXPECT_EQ(get(provider, "/charges?key=k").body, R"({"charges":[]})");
  const auto answer = parse_json(made.body);
  ASSERT_TRUE(answer);
  EXPECT_EQ((*answer)["charge"].string, "ch_1");
}

TEST(TheProvider, declines_a_source_without_charging) {
  const Provider provider;
  const auto declined =
      send_once(provider.address(), charge("k", {}, R"({"amount":5,"source":"tok_declined"})"));
  EXPECT_EQ(declined.status, 402);
  EXPECT_EQ(declined.body, R"({"error":"card_declined"})");
  EXPECT_EQ(provider.of_key("k").arrivals, 1);
  EXPECT_EQ(provider.effects("k"), 0);
  EXPECT_EQ(send_once(provider.address(), charge("k", {}, R"({"source":"tok_visa"})")).status, 201);
}

TEST(TheProvider, breaks_the_next_requests_as_armed) {
  const Provider provider;
  const auto ask = [&](std::string_view faults = {}) {
    return send_once(provider.address(), charge("k", faults)).status;
  };
  provider.arm("refuse=429,header=Retry-After:2", 2);
  EXPECT_EQ(get(provider, "/charges?key=k").status, 200) << "it is for charging requests";
  EXPECT_EQ(ask("status=202"), 202) << "a request's own faults have precedence";
  const auto refused = send_once(provider.address(), charge("k"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.get("Retry-After"), "2");
  EXPECT_EQ(ask(), 429);
  EXPECT_EQ(ask(), 201);
  EXPECT_EQ(provider.ledger().effects, 2);
}

TEST(TheProvider, arms_faults_for_a_path_and_disarms_them) {
  const Provider provider;
  provider.arm("500-before", 1, "/refunds");
  provider.arm("500-after", 5);
  EXPECT_EQ(get(provider, "/faults").body,
            R"({"armed":[{"list":"500-before","path":"/refunds","left":1},)"
            R"({"list":"500-after","path":"","left":5}]})");
  EXPECT_EQ(send_once(provider.address(), charge("c")).status, 500);
  EXPECT_EQ(provider.effects("c"), 1);
  EXPECT_EQ(send_once(provider.address(), refund("r", "{}")).status, 500);
  EXPECT_EQ(provider.effects("r"), 0);
  send_once(provider.address(), {.method = "DELETE", .target = "/faults"});
  EXPECT_EQ(send_once(provider.address(), charge("c")).status, 201);
  const auto arm = [&](std::string_view query) {
    return send_once(provider.address(), {.target = "/faults?" + std::string(query)}).status;
  };
  EXPECT_EQ(arm("list=misspelt&count=1"), 418);
  EXPECT_EQ(arm("count=1"), 400);
  EXPECT_EQ(arm("list=500-after&count=x"), 400);
  EXPECT_EQ(get(provider, "/faults").body, R"({"armed":[]})");
  EXPECT_EQ(provider.ledger().arrivals, 3) << "arming is no request to the provider's business";
}

TEST(TheProvider, random_faults_follow_the_seed) {
  static constexpr int requests = 200;
  const auto struck = [](unsigned seed) {
    const Provider provider;
    provider.arm_by_chance("500-after", 0.2, seed);
    provider.arm_by_chance("header=X-Also:1", 1, seed);
    provider.arm_by_chance("drop-before", 0, seed);
    std::string which;
    for (int i = 0; i < requests; ++i) {
      const auto answer = send_once(provider.address(), charge("k"));
      EXPECT_EQ(answer.get("X-Also"), "1") << "those that fall together strike together";
      which += answer.status == 500 ? 'x' : '.';
    }
    EXPECT_EQ(provider.effects("k"), requests);
    const auto armed = parse_json(get(provider, "/faults").body).value_or(Json{});
    EXPECT_EQ(armed["armed"].items.at(0)["taken"].integer, std::ranges::count(which, 'x'));
    provider.arm("refuse=429");
    EXPECT_EQ(send_once(provider.address(), charge("k")).status, 429);
    return which;
  };
  const std::string once = struck(7);
  EXPECT_EQ(struck(7), once);
  EXPECT_NE(struck(8), once);
  EXPECT_GT(std::ranges::count(once, 'x'), requests / 10);
  EXPECT_LT(std::ranges::count(once, 'x'), requests * 3 / 10);
  const Provider provider;
  for (const std::string query :
       {"chance=2", "chance=-1", "chance=x", "chance=nan", "chance=1&seed=x"}) {
    EXPECT_EQ(send_once(provider.address(), {.target = "/faults?list=drop-before&" + query}).status,
              400)
        << query;
  }
}

}  // namespace
}  // namespace idem::test
