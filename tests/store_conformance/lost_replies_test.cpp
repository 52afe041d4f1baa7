#include "store_conformance/dynamodb/asking.hpp"
#include "store_conformance/mysql/asking.hpp"
#include "store_conformance/postgres/asking.hpp"
#include "store_conformance/redis/asking.hpp"

/// What a store says of a call whose replies a proxy loses: a reading wrote nothing.
namespace idem::test {
namespace {

/// A store, and the same one by a way that loses replies.
class LostReplies : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "redis:") open_redis_ways();
    if (GetParam() == "dynamodb:") open_dynamodb_ways();
    if (GetParam() == "postgres:") open_postgres_ways();
    if (GetParam() == "mysql:") open_mysql_ways();
    run(*cut, 200);
    // Asks all buckets, so that there is a connection for each: what cannot be sent leaves no
    // doubt.
    EXPECT_TRUE(try_ask(*cut, List{}).has_value());
  }
  void TearDown() override {
    cut.reset();
    direct.reset();
  }

  /// Of each call that is sent now, no reply comes.
  std::vector<StoreResult> ask_without_replies(std::vector<StoreCall> calls) {
    proxy->lose_answers(1, 0);  // Each one: nothing is left to chance.
    auto results = ask_at_once(*cut, std::move(calls));
    proxy->lose_answers(0, 0);
    return results;
  }

  std::unique_ptr<CuttingProxy> proxy;
  std::unique_ptr<Store> cut;
  std::unique_ptr<Store> direct;

 private:
  void open_redis_ways() {
    const std::string address = shared_redis_address();
    const std::string path = "/?prefix=" + new_redis_prefix();
    proxy = std::make_unique<CuttingProxy>(address);
    direct = open_at("redis://" + address + path);
    cut = open_at(fmt::format("redis://127.0.0.1:{}{}", proxy->port(), path));
  }
  void open_dynamodb_ways() {
    const std::string endpoint = shared_dynamodb_endpoint();
    const std::string table = new_dynamodb_table();
    proxy = std::make_unique<CuttingProxy>(endpoint.substr(endpoint.rfind('/') + 1));
    direct = open_table(dynamodb_url(endpoint, table));
    cut = open_table(dynamodb_url(fmt::format("http://127.0.0.1:{}", proxy->port()), table));
  }
  void open_postgres_ways() {
    postgres_ = std::make_unique<TestDatabase>();
    proxy = std::make_unique<CuttingProxy>(socket_of(postgres_->uri()));
    direct = open_by_uri(postgres_->uri());
    cut = open_by_uri(through(*proxy, postgres_->uri()));
  }
  void open_mysql_ways() {
    mysql_ = std::make_unique<TestMysqlDatabase>();
    proxy = std::make_unique<CuttingProxy>(address_in(mysql_->url()));
    direct = open_by_url(mysql_->url());
    cut = open_by_url(by_proxy(*proxy, mysql_->url()));
  }

  std::unique_ptr<TestDatabase> postgres_;
  std::unique_ptr<TestMysqlDatabase> mysql_;
};

void expect_unavailable(const std::vector<StoreResult>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    ASSERT_FALSE(results[i].has_value()) << "call " << i;
    const StoreError& error = results[i].error();
    EXPECT_EQ(error.code, StoreError::Code::unavailable) << "call " << i << ": " << error.detail;
  }
}

TEST_P(LostReplies, S04_a_reading_whose_reply_is_lost_is_unavailable) {
  expect_unavailable(ask_without_replies(
      {Find{key(200)}, List{}, ReadEvidence{key(200)}, ReadLines{"audit"}, ListJournals{}}));
}

INSTANTIATE_TEST_SUITE_P(Each, LostReplies,
                         testing::Values("redis:", "dynamodb:", "postgres:", "mysql:"),
                         name_of_store);

/// The stores that read a record before they write it on a condition.
class LostLooks : public LostReplies {};

TEST_P(LostLooks, S04_a_reserve_whose_look_is_lost_is_unavailable_and_wrote_nothing) {
  Reserve reserve = a_reserve_in(*cut, 1);
  reserve.also = {{key(2), {}}};
  Accept accept{a_reserve_in(*cut, 3), "POST / please"};
  accept.as.also = {{key(4), {}}};
  expect_unavailable(ask_without_replies({reserve, accept}));
  for (int number = 1; number <= 4; ++number) {
    const auto found = try_ask(*direct, Find{key(number)});
    ASSERT_TRUE(found.has_value()) << found.error().detail;
    EXPECT_FALSE(found->has_value()) << number;
  }
}

TEST_P(LostLooks, S04_a_list_of_work_whose_reply_is_lost_is_unavailable) {
  expect_unavailable(ask_without_replies(
      {Claim{token(9), "dispatcher", std::chrono::hours(1), false}, Sweep{10}, Reap{10}}));
}

INSTANTIATE_TEST_SUITE_P(Each, LostLooks, testing::Values("redis:", "dynamodb:"), name_of_store);

// ---- damaged records, where no clock of a server disturbs ----

/// A store by the test's clock, in which one record can be damaged.
class DamagedWork : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto now = clock.host().wall;
    if (GetParam() == "redis:") {
      const std::string url = "redis://" + shared_redis_address() + "/?prefix=" + place_;
      auto opened = open_redis(url, test_settings(), {.clock = now});
      ASSERT_TRUE(opened.has_value()) << opened.error().detail;
      store = std::move(*opened);
    } else {
      DynamodbOptions options = quick_options();
      options.clock = now;
      store = open_table(dynamodb_url(shared_dynamodb_endpoint(), place_), options);
    }
  }
  void TearDown() override { store.reset(); }

  /// The record of key('a'), by which its names can be written.
  void damage() {
    if (GetParam() == "redis:") {
      const std::string key = "{" + place_ + ":61}raaaaaaaaaaaaaaaa";
      EXPECT_EQ(ask_redis(shared_redis_address(), "exists " + key), "1") << key;
      ask_redis(shared_redis_address(), "set " + key + " damaged");
      return;
    }
    const std::string item =
        fmt::format(R"("TableName":"{}","Key":{{"p":{{"S":"r61"}},"s":{{"B":"{}"}}}})", place_,
                    to_base64_of_key('a'));
    ask_dynamodb(shared_dynamodb_endpoint(), "UpdateItem",
                 "{" + item +
                     R"x(,"UpdateExpression":"SET r = :r","ConditionExpression":)x"
                     R"x("attribute_exists(r)","ExpressionAttributeValues":{":r":{"B":"AAAA"}}})x");
  }

  TestClock clock;
  std::unique_ptr<Store> store;

 private:
  std::string place_ = GetParam() == "redis:" ? new_redis_prefix() : new_dynamodb_table();
};

TEST_P(DamagedWork, S22_a_damaged_request_that_claims_pass_over_is_reported_by_a_sweep) {
  const auto accepted = try_ask(*store, Accept{a_reserve_in(*store, 'a'), "POST / please"});
  ASSERT_TRUE(accepted && is<Pending>(*accepted));
  damage();
  const Claim claim{token(9), "dispatcher", std::chrono::hours(1), false};
  const auto met = try_ask(*store, claim);
  ASSERT_FALSE(met.has_value());
  EXPECT_EQ(met.error().code, StoreError::Code::damaged) << met.error().detail;
  const auto after = try_ask(*store, claim);
  ASSERT_TRUE(after.has_value()) << after.error().detail;
  EXPECT_FALSE(after->has_value()) << "it is in the way of no other";
  clock.advance(2 * retention);
  const auto swept = try_ask(*store, Sweep{10});
  ASSERT_TRUE(swept.has_value()) << swept.error().detail;
  ASSERT_EQ(swept->size(), 1U);
  EXPECT_EQ(swept->front().id, key('a'));
  EXPECT_TRUE(swept->front().damaged);
  const auto again = try_ask(*store, Sweep{10});
  ASSERT_TRUE(again.has_value()) << again.error().detail;
  EXPECT_TRUE(again->empty()) << "once";
}

INSTANTIATE_TEST_SUITE_P(Each, DamagedWork, testing::Values("redis:", "dynamodb:"), name_of_store);

}  // namespace
}  // namespace idem::test
