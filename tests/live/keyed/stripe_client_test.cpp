#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/clients.hpp"
#include "support/cutting_proxy.hpp"
#include "support/json.hpp"
#include "support/live.hpp"
#include "support/redis.hpp"

/// `preset: stripe` as Stripe's own client for Node sees it: what each answer of ours becomes there
/// (protocol.md §13).
namespace idem::test {
namespace {

constexpr const char* secret = "sk_test_1234567890";

/// A run of stripe_calls.js.
struct Plan {
  std::string calls;  ///< JSON, without the brackets.
  int retries = 0;
  int at_once = 1;
};

class StripeClient : public testing::Test {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    IDEM_NEED_NODE_CLIENT("stripe");
    provider_ = std::make_unique<Provider>();
  }

  void start(std::vector<std::string> flags = {}, GatewayOptions options = {}) {
    if (options.upstream.empty()) options.upstream = provider_->address();
    if (options.store_url.empty()) options.store = dir_.path() / "idem.db";
    options.flags = {"--preset", "stripe"};
    options.flags.insert(options.flags.end(), flags.begin(), flags.end());
    if (options.scope.size() == 3) options.scope = {"--scope", "authorization"};
    gateway_ = std::make_unique<Gateway>(std::move(options));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }

  static std::unique_ptr<Process> begin(const std::string& address, const Plan& plan) {
    const auto json = fmt::format(R"({{"secret":"{}","retries":{},"at_once":{},"calls":[{}]}})",
                                  secret, plan.retries, plan.at_once, plan.calls);
    ProcessOptions options{.program = "/usr/bin/env", .arguments = {}};
    options.arguments = {"node", client_program("stripe_calls.js"), address, json};
    options.environment = {"NODE_PATH=" + node_modules().string()};
    return std::make_unique<Process>(options);
  }

  /// The result of each call.
  static std::vector<Json> results(Process& client) {
    EXPECT_EQ(client.exit_code(std::chrono::minutes(4)), 0) << client.output();
    std::vector<Json> all;
    std::istringstream lines(client.output());
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with('{')) continue;
      all.push_back(parse_json(line).value_or(Json()));
    }
    return all;
  }
  std::vector<Json> make(const Plan& plan) {
    const auto client = begin(gateway_->address(), plan);
    return results(*client);
  }
  Json make_one(const std::string& call) {
    auto all = make({.calls = call});
    return all.size() == 1 ? all.front() : Json();
  }

  TempDir dir_;
  std::unique_ptr<Provider> provider_;
  std::unique_ptr<Gateway> gateway_;
};

testing::AssertionResult is_error(const Json& result, std::string_view name, int status,
                                  std::string_view idem_code, std::string_view should_retry) {
  const auto outcome =
      fmt::format("{} {} {} retry={}", result["error"].string, result["status"].integer,
                  result["idem_code"].string, result["retry"].string);
  const auto expected = fmt::format("{} {} {} retry={}", name, status, idem_code, should_retry);
  if (outcome == expected && !result["message"].string.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << outcome << ", expected " << expected << ": " << result["message"].string;
}

TEST_F(StripeClient, S13_V01_retries_through_a_proxy_that_cuts_answers_charge_once) {
  ASSERT_NO_FATAL_FAILURE(start());
  constexpr int payments = 200;
  const unsigned seed = 2323;
  CuttingProxy proxy(gateway_->address());
  proxy.lose_answers(0.3, seed);
  const auto client =
      begin("127.0.0.1:" + std::to_string(proxy.port()),
            {.calls = fmt::format(R"({{"key":"k-NUMBER","amount":5,"times":{}}})", payments),
             .retries = 12,
             .at_once = 50});
  const auto made = results(*client);
  ASSERT_EQ(made.size(), static_cast<std::size_t>(payments)) << client->output();
  std::set<std::string> ids;
  int replayed = 0;
  for (const auto& one : made) {
    EXPECT_EQ(one["error"].string, "") << one["message"].string;
    ids.insert(one["id"].string);
    replayed += one["replayed"].boolean ? 1 : 0;
  }
  const auto ledger = provider_->ledger();
  fmt::print("seed={} payments={} answers_lost={} replayed={} charged={}\n", seed, payments,
             proxy.lost(), replayed, ledger.effects);
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(payments));
  EXPECT_EQ(ledger.effects, payments) << "each is charged once";
  EXPECT_GT(proxy.lost(), 0);
}

TEST_F(StripeClient, S13_V02_a_misuse_is_an_idempotency_error) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_EQ(make_one(R"({"key":"k","amount":5})")["error"].string, "");
  const auto misused = make_one(R"({"key":"k","amount":6})");
  EXPECT_TRUE(is_error(misused, "StripeIdempotencyError", 400, "key_reused", "false"));
  EXPECT_EQ(misused["type"].string, "idempotency_error");
  EXPECT_NE(misused["operation_ref"].string, "");
  const auto again = make_one(R"({"key":"k","amount":5})");
  EXPECT_EQ(again["error"].string, "");
  EXPECT_TRUE(again["replayed"].boolean);
  EXPECT_EQ(provider_->ledger().effects, 1);
}

TEST_F(StripeClient, S13_V05_a_duplicate_while_the_first_runs_gets_in_progress_and_may_retry) {
  ASSERT_NO_FATAL_FAILURE(start());
  provider_->arm("hold=h");
  const auto first = begin(gateway_->address(), {.calls = R"({"key":"k","amount":5})"});
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const auto second = make_one(R"({"key":"k","amount":5})");
  EXPECT_TRUE(is_error(second, "StripeAPIError", 409, "in_progress", "true"));
  EXPECT_EQ(second["code"].string, "idempotency_key_in_use");
  EXPECT_EQ(second["type"].string, "idempotency_error");
  provider_->release("h");
  const auto made = results(*first);
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0]["error"].string, "");
  // A race: each of them gets the one payment.
  const auto race =
      make({.calls = R"({"key":"r","amount":5,"times":8})", .retries = 8, .at_once = 8});
  ASSERT_EQ(race.size(), 8U);
  for (const auto& one : race) {
    EXPECT_EQ(one["error"].string, "") << one["message"].string;
    EXPECT_EQ(one["id"].string, race[0]["id"].string);
  }
  EXPECT_EQ(provider_->effects("r"), 1);
  EXPECT_EQ(provider_->effects("k"), 1);
}

TEST_F(StripeClient, S13_a_mistake_in_a_request_is_an_invalid_request_error) {
  ASSERT_NO_FATAL_FAILURE(start({"--key-time", "checked", "--request-body-max", "64KiB"}));
  EXPECT_TRUE(is_error(make_one(R"({"omit_key":true,"amount":5})"), "StripeInvalidRequestError",
                       400, "key_missing", "false"));
  EXPECT_TRUE(is_error(make_one(R"({"key":"a,b","amount":5})"), "StripeInvalidRequestError", 400,
                       "key_invalid", "false"));
  EXPECT_TRUE(is_error(make_one(R"({"key":"large","amount":5,"padding":3000000})"),
                       "StripeInvalidRequestError", 400, "body_too_large", "false"));
  // Of the year 2020: what ran under it may have been forgotten since.
  EXPECT_TRUE(is_error(make_one(R"({"key":"01700000-0000-7000-8000-000000000000","amount":5})"),
                       "StripeIdempotencyError", 400, "key_expired", "false"));
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

TEST_F(StripeClient, S13_a_quota_is_a_rate_limit) {
  ASSERT_NO_FATAL_FAILURE(start({"--quota-active-keys", "1"}));
  ASSERT_EQ(make_one(R"({"key":"k1","amount":5})")["error"].string, "");
  const auto refused = make_one(R"({"key":"k2","amount":5})");
  EXPECT_TRUE(is_error(refused, "StripeRateLimitError", 429, "quota_exceeded", "true"));
  EXPECT_EQ(refused["code"].string, "rate_limit");
  EXPECT_EQ(provider_->ledger().arrivals, 1);
}

TEST_F(StripeClient, S13_a_client_without_credentials_is_not_authenticated) {
  GatewayOptions options;
  options.scope = {"--scope", "header:X-Tenant-Id", "--trust-scope-header", "--log-format", "text"};
  ASSERT_NO_FATAL_FAILURE(start({}, std::move(options)));
  EXPECT_TRUE(is_error(make_one(R"({"key":"k","amount":5})"), "StripeAuthenticationError", 401,
                       "scope_missing", "false"));
}

TEST_F(StripeClient, S13_V10_an_unknown_outcome_is_an_api_error_and_never_runs_again) {
  ASSERT_NO_FATAL_FAILURE(start());
  provider_->arm("drop-after");
  const auto first = make({.calls = R"({"key":"k","amount":5})", .retries = 3});
  ASSERT_EQ(first.size(), 1U);
  EXPECT_TRUE(is_error(first[0], "StripeAPIError", 502, "outcome_unknown", "false"));
  EXPECT_TRUE(is_error(make_one(R"({"key":"k","amount":5})"), "StripeAPIError", 409,
                       "outcome_unknown", "false"));
  EXPECT_EQ(provider_->effects("k"), 1);
}

TEST_F(StripeClient, S13_an_upstream_that_is_not_there_is_an_api_error_that_may_be_retried) {
  std::string nobody;
  {
    const CuttingProxy gone(provider_->address());
    nobody = "127.0.0.1:" + std::to_string(gone.port());
  }
  GatewayOptions options;
  options.upstream = nobody;
  ASSERT_NO_FATAL_FAILURE(start({}, std::move(options)));
  EXPECT_TRUE(is_error(make_one(R"({"key":"k","amount":5})"), "StripeAPIError", 503,
                       "upstream_unreachable", "true"));
}

TEST_F(StripeClient, S13_a_store_that_is_down_is_an_api_error_that_may_be_retried) {
  RedisServer redis;
  GatewayOptions options;
  options.store_url = redis.url();
  ASSERT_NO_FATAL_FAILURE(start({}, std::move(options)));
  ASSERT_EQ(make_one(R"({"key":"k1","amount":5})")["error"].string, "");
  redis.crash();
  EXPECT_TRUE(is_error(make_one(R"({"key":"k2","amount":5})"), "StripeAPIError", 503,
                       "store_unavailable", "true"));
  EXPECT_EQ(provider_->ledger().arrivals, 1);
}

TEST_F(StripeClient, S13_answers_of_the_upstream_pass_as_they_are) {
  ASSERT_NO_FATAL_FAILURE(start());
  auto declined = charge("declined", "", R"({"amount":5,"source":"tok_declined"})");
  declined = with(without(std::move(declined), "X-Tenant-Id"), "Authorization", "Bearer sk");
  const auto first = send_once(gateway_->address(), declined);
  EXPECT_EQ(first.status, 402);
  EXPECT_EQ(first.body, send_once(provider_->address(), declined).body);
  EXPECT_FALSE(first.get("Stripe-Should-Retry"));
  EXPECT_TRUE(replays(first, send_once(gateway_->address(), declined)));
}

TEST_F(StripeClient, S13_a_refusal_before_routing_has_the_form_of_the_defaults) {
  ASSERT_NO_FATAL_FAILURE(start());
  Connection client(gateway_->address());
  ASSERT_TRUE(client.send_raw("POST /charges HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n"));
  const auto refused = client.read_response();
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.get("Content-Type"), "application/json");
  EXPECT_EQ(refused.get("Stripe-Should-Retry"), "false");
  const auto body = parse_json(refused.body).value_or(Json());
  EXPECT_EQ(body["error"]["type"].string, "invalid_request_error") << refused.body;
  EXPECT_EQ(body["error"]["code"].string, "bad_request");
}

}  // namespace
}  // namespace idem::test
