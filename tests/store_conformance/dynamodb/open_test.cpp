#include "store/dynamodb/url.hpp"
#include "store_conformance/dynamodb/asking.hpp"

/// The store in DynamoDB at its start: what a table must be, and what is asked of it.
namespace idem::test {
namespace {

std::string fresh_url() { return dynamodb_url(shared_dynamodb_endpoint(), new_dynamodb_table()); }

std::string refusal_of(const Opened& store) {
  return store ? "it was opened" : store.error().detail;
}

TEST(DynamodbOpen, T53_a_missing_table_is_made_where_a_new_store_may_begin) {
  const std::string url = fresh_url();
  DynamodbOptions options = quick_options();
  options.which.make = false;
  EXPECT_NE(refusal_of(open_dynamodb(url, test_settings(), options)).find("makes none"),
            std::string::npos);
  options.which = {.id = "5d9d2a50-0000-4000-8000-000000000000"};
  EXPECT_NE(refusal_of(open_dynamodb(url, test_settings(), options)).find("store_id"),
            std::string::npos);
  options.which = {};
  OpenedStore made;
  options.opened = [&](const OpenedStore& opened) { made = opened; };
  ASSERT_TRUE(open_dynamodb(url, test_settings(), options).has_value());
  EXPECT_TRUE(made.is_new);
  EXPECT_EQ(made.id.size(), 36u);
  options.which.make = false;
  ASSERT_TRUE(open_dynamodb(url, test_settings(), options).has_value());
  EXPECT_FALSE(made.is_new);
}

TEST(DynamodbOpen, T53_a_table_of_others_is_refused_by_name) {
  const std::string endpoint = shared_dynamodb_endpoint();
  const std::string table = new_dynamodb_table();
  const std::string url = dynamodb_url(endpoint, table);
  ask_dynamodb(endpoint, "CreateTable",
               R"({"TableName":")" + table +
                   R"(","BillingMode":"PAY_PER_REQUEST",)"
                   R"("AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],)"
                   R"("KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]})");
  const std::string why = refusal_of(open_dynamodb(url, test_settings(), quick_options()));
  EXPECT_NE(why.find("id S HASH"), std::string::npos) << why;
}

TEST(DynamodbOpen, S02_a_table_whose_identity_is_gone_is_refused) {
  const std::string endpoint = shared_dynamodb_endpoint();
  const std::string table = new_dynamodb_table();
  const std::string url = dynamodb_url(endpoint, table);
  {
    const auto store = open_table(url);
    run(*store, 1);
  }
  ask_dynamodb(endpoint, "DeleteItem",
               R"({"TableName":")" + table + R"(","Key":{"p":{"S":"i"},"s":{"B":")" +
                   to_base64("identity") + "\"}}}");
  const std::string why = refusal_of(open_dynamodb(url, test_settings(), quick_options()));
  EXPECT_NE(why.find("identity was lost"), std::string::npos) << why;
}

TEST(DynamodbOpen, S02_a_store_that_loses_its_identity_admits_nothing_new) {
  const std::string endpoint = shared_dynamodb_endpoint();
  const std::string table = new_dynamodb_table();
  const auto store = open_table(dynamodb_url(endpoint, table));
  const Execute attempt = run(*store, 1);
  ask_dynamodb(endpoint, "DeleteItem",
               R"({"TableName":")" + table + R"(","Key":{"p":{"S":"i"},"s":{"B":")" +
                   to_base64("identity") + "\"}}}");
  const auto until = MonotonicClock::now() + quick_options().waits.identity_lease;
  int number = 1;
  while (MonotonicClock::now() <= until)
    (void)try_ask(*store, a_reserve_in(*store, ++number % 100));
  const auto outcome = try_ask(*store, a_reserve_in(*store, 101));
  ASSERT_FALSE(outcome.has_value());
  EXPECT_NE(outcome.error().detail.find("lost its identity"), std::string::npos);
  EXPECT_EQ(try_ask(*store, a_complete(attempt))->verdict, Verdict::done);
}

TEST(DynamodbOpen, V33_urls_are_read_and_refused_by_name) {
  const auto good = dynamodb::parse_url(
      "dynamodb://idem.keys?region=eu-west-1&endpoint=http%3A%2F%2F127.0.0.1%3A8000&profile=pay");
  ASSERT_TRUE(good.has_value()) << good.error();
  EXPECT_EQ(good->table, "idem.keys");
  EXPECT_EQ(good->endpoint, "http://127.0.0.1:8000");
  EXPECT_EQ(good->profile, "pay");
  EXPECT_EQ(dynamodb::parse_url("dynamodb://idem?region=cn-north-1")->endpoint,
            "https://dynamodb.cn-north-1.amazonaws.com.cn");
  for (const char* const wrong :
       {"dynamodb://", "dynamodb://ab?region=r", "dynamodb://t%20able?region=r",
        "dynamodb://table?region=", "dynamodb://table?region=EU%2Fwest",
        "dynamodb://key:secret@table?region=r", "dynamodb://table?region=r&endpoint=ftp://x",
        "dynamodb://table?region=r&endpoint=http://u:p@x", "dynamodb://table?region=r&regoin=x",
        "dynamodb://table?region=r&ca_file=/x&endpoint=http://x"}) {
    const auto parsed = dynamodb::parse_url(wrong);
    ASSERT_FALSE(parsed.has_value()) << wrong;
    EXPECT_EQ(parsed.error().find("secret"), std::string::npos);
  }
}

TEST(DynamodbOpen, S02_two_first_starts_at_once_make_one_store) {
  const std::string url = fresh_url();
  std::string ids[2];
  std::vector<std::thread> starts;
  for (std::string& id : ids) {
    starts.emplace_back([&] {
      DynamodbOptions options = quick_options();
      options.opened = [&](const OpenedStore& opened) { id = opened.id; };
      const auto store = open_dynamodb(url, test_settings(), options);
      EXPECT_TRUE(store.has_value()) << (store ? "" : store.error().detail);
    });
  }
  for (std::thread& start : starts) start.join();
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_FALSE(ids[0].empty());
}

}  // namespace
}  // namespace idem::test
