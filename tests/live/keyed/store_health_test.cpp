#include <idem/limits.hpp>

#include <fmt/format.h>

#include <chrono>
#include <functional>

#include "support/admin.hpp"
#include "support/back_off.hpp"
#include "support/dynamodb.hpp"
#include "support/mysql.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"

/// A store that goes away and comes back, under a gateway that goes on.
namespace idem::test {
namespace {

struct Server {
  std::string url;
  std::function<void()> stop;
  std::function<void()> start;
};

Server a_server(const std::string& kind) {
  if (kind == "postgres") {
    const auto server = std::make_shared<PostgresServer>();
    return {server->uri(), [server] { server->stop(); }, [server] { server->start(); }};
  }
  if (kind == "mysql") {
    const auto server = std::make_shared<MysqlServer>();
    return {server->url(), [server] { server->crash(); }, [server] { server->start(); }};
  }
  if (kind == "dynamodb") {
    const auto server = std::make_shared<DynamodbServer>("path=data");
    return {dynamodb_url(server->endpoint(), "idem"), [server] { server->crash(); },
            [server] { server->start(); }};
  }
  const auto server = std::make_shared<RedisServer>();
  return {server->url(), [server] { server->crash(); }, [server] { server->start(); }};
}

class StoreHealth : public Operated, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    provider_ = std::make_unique<Provider>();
    server_ = a_server(GetParam());
    gateway_ = std::make_unique<Gateway>(
        GatewayOptions{.upstream = provider_->address(), .store_url = server_.url});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }

  /// Clients go on asking, each with a key of its own, until the gateway has given the store up.
  void ask_until_given_up() {
    for (int i = 0; i < 1'500 && metric("idem_store_up") != 0; ++i) {
      const auto answer = ask(charge(fmt::format("while-away-{}", i)));
      ASSERT_TRUE(is_problem(answer, 503, "store_unavailable")) << answer.raw;
      EXPECT_TRUE(answer.get("Retry-After"));
      back_off();
    }
    ASSERT_EQ(metric("idem_store_up"), 0);
  }
  /// Nobody asks for anything but whether it is ready.
  void wait_until_ready() {
    for (int i = 0; i < 1'500 && get("/readyz").status != 200; ++i) {
      back_off();
    }
    ASSERT_EQ(get("/readyz").status, 200);
  }

  /// As the advice says: the same request with the same key. A store has several connections, and
  /// that one is back, which is what readiness looks at, is no promise about the others.
  Response ask_again(const Request& request) {
    auto answer = ask(request);
    for (int i = 0; i < 1'500 && answer.status == 503; ++i) {
      back_off();
      answer = ask(request);
    }
    return answer;
  }

  Server server_;
};

INSTANTIATE_TEST_SUITE_P(Stores, StoreHealth,
                         testing::Values("postgres", "mysql", "redis", "dynamodb"),
                         [](const auto& kind) { return kind.param; });

TEST_P(StoreHealth, P26_a_path_of_thousands_of_bytes_is_served_and_replayed) {
  Request request = charge("long-path");
  request.target += '/';
  request.target.resize(7'000, 'p');  // The provider's parser takes heads of 8 KiB.
  const auto first = ask(request);
  EXPECT_EQ(first.get("Idempotency-Outcome"), "stored") << first.raw;
  EXPECT_TRUE(replays(first, ask(request)));
  const Json page = read("/v1/keys");
  ASSERT_EQ(page["keys"].items.size(), 1U);
  EXPECT_EQ(page["keys"].items[0]["operation"].string, "POST " + request.target);
  request.target.resize(limits::request_line_bytes_max, 'p');
  EXPECT_EQ(ask(request).status, 414);
}

TEST_P(StoreHealth, V15_a_store_that_is_down_is_left_alone_and_found_again_by_itself) {
  const auto before = ask(charge("before"));
  ASSERT_EQ(before.status, 201);
  EXPECT_EQ(metric("idem_store_up"), 1);
  EXPECT_EQ(metric("idem_store_calls_refused_total"), 0);
  server_.stop();
  ASSERT_NO_FATAL_FAILURE(ask_until_given_up());
  EXPECT_TRUE(is_problem(get("/readyz"), 503, "store_unavailable"));
  EXPECT_EQ(get("/livez").status, 200);
  const double refused = metric("idem_store_calls_refused_total");
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(is_problem(ask(charge("during")), 503, "store_unavailable"));
  }
  EXPECT_TRUE(is_problem(ask(charge("before")), 503, "store_unavailable")) << "P5";
  EXPECT_GE(metric("idem_store_calls_refused_total"), refused + 21);
  EXPECT_EQ(provider_->ledger().arrivals, 1) << "nothing was sent meanwhile";

  server_.start();
  ASSERT_NO_FATAL_FAILURE(wait_until_ready());
  // The first write may still meet a connection that is not back, and is then a failed trial.
  EXPECT_EQ(metric_from("idem_store_up", 1), 1);
  EXPECT_TRUE(replays(before, ask_again(charge("before"))));
  EXPECT_EQ(ask_again(charge("during")).status, 201) << "same_key was the advice";
  EXPECT_EQ(provider_->ledger().arrivals, 2);
  const auto log = gateway_->process().output();
  EXPECT_NE(log.find("store_unavailable"), log.npos) << log;
  EXPECT_NE(log.find("store_available"), log.npos) << log;
}

// The gateway settles an attempt that ran when the store is back, whatever answer its client
// got meanwhile.
TEST_P(StoreHealth, V15_attempts_that_ran_meanwhile_are_settled_when_the_store_is_back) {
  Connection owner(gateway_->address());
  owner.send(charge("k", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  server_.stop();
  ASSERT_NO_FATAL_FAILURE(ask_until_given_up());
  provider_->release("h");
  const auto owner_answer = owner.read_response();
  EXPECT_TRUE(is_problem(owner_answer, 504, "outcome_unknown"))
      << "after the longest wait for a settling";
  EXPECT_EQ(metric("idem_unsettled_attempts"), 1);
  EXPECT_EQ(metric("idem_store_up"), 0);
  server_.start();
  ASSERT_NO_FATAL_FAILURE(wait_until_ready());
  ask_again(charge("k"));
  const auto replay = ask_until_settled(gateway_->address(), charge("k"));
  EXPECT_EQ(replay.status, 201);
  EXPECT_EQ(replay.get("Idempotent-Replayed"), "true");
  EXPECT_EQ(provider_->of_key("k").arrivals, 1);
  EXPECT_EQ(provider_->of_key("k").effects, 1);
  for (int i = 0; i < 1'500 && metric("idem_unsettled_attempts") != 0; ++i) {
    back_off();
  }
  EXPECT_EQ(metric("idem_unsettled_attempts"), 0);
}

}  // namespace
}  // namespace idem::test
