#include "store/store_identity.hpp"
#include "store_conformance/dynamodb/asking.hpp"
#include "store_conformance/dynamodb/fault_proxy.hpp"
#include "support/back_off.hpp"
#include "support/certificates.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>

#include <future>

/// How often the store in DynamoDB sends a request, and what it says of one that may have arrived.
namespace idem::test {
namespace {

/// With a connection that is kept from the first reserve on.
class DynamodbSendings : public testing::Test {
 protected:
  void SetUp() override { run(*store, 200); }

  /// An unknown record of this key.
  Execute lose_outcome(int number) {
    const Execute attempt = run(*store, number);
    EXPECT_TRUE(try_ask(*store, a_mark_unknown(attempt)).has_value());
    return attempt;
  }
  Resolve found_by_provider(const Execute& attempt) const {
    Resolve verb = a_resolve(1, Resolve::As::completed, attempt.attempt.fence);
    verb.id = attempt.id;
    return verb;
  }
  std::size_t lines_about(int number) {
    const auto log = try_ask(*direct, ReadEvidence{key(number)});
    EXPECT_TRUE(log.has_value());
    return log ? log->size() : 0;
  }
  /// Says that a node began a change an hour from now, by its clock of that time.
  void begin_change_in_the_future() const {
    const std::string endpoint = shared_dynamodb_endpoint();
    const std::string item =
        fmt::format(R"("TableName":"{}","Key":{{"p":{{"S":"i"}},"s":{{"B":"{}"}}}})", table,
                    to_base64("identity"));
    const Json found = ask_dynamodb(endpoint, "GetItem", "{" + item + R"(,"ConsistentRead":true})");
    const auto bytes = from_base64(found["Item"]["x"]["B"].string);
    ASSERT_TRUE(bytes.has_value());
    auto value = parse_identity_value(*bytes);
    ASSERT_TRUE(value.has_value());
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    value->identity.is_changing = true;
    value->identity.changing_since = StoreTime(std::chrono::duration_cast<Millis>(wall) + 1h);
    ask_dynamodb(endpoint, "UpdateItem",
                 fmt::format(R"({{{},"UpdateExpression":"SET x = :x",)"
                             R"("ExpressionAttributeValues":{{":x":{{"B":"{}"}}}}}})",
                             item, to_base64(to_identity_value(value->version, value->identity))));
  }

  std::string table = new_dynamodb_table();
  FaultProxy proxy{shared_dynamodb_endpoint()};
  std::unique_ptr<Store> store = open_table(dynamodb_url(proxy.endpoint(), table));
  std::unique_ptr<Store> direct = open_table(dynamodb_url(shared_dynamodb_endpoint(), table));
};

TEST_F(DynamodbSendings, S04_a_decision_whose_answer_is_lost_is_recognised_and_made_once) {
  const Execute attempt = lose_outcome(1);
  const int before = proxy.met();
  proxy.plan("UpdateItem", Mishap::cut_after, 1, to_base64_of_key(1));
  const auto reply = try_ask(*store, found_by_provider(attempt));
  ASSERT_TRUE(reply.has_value()) << reply.error().detail;
  EXPECT_EQ(reply->verdict, Resolve::Verdict::done);
  EXPECT_EQ(proxy.met(), before + 1);
  EXPECT_EQ(lines_about(1), 1U);
}

// libcurl repeated a request on a kept connection by itself, and the store then decided anew: a
// third line said that the first decision had come too late.
TEST_F(DynamodbSendings, S04_a_decision_whose_answer_is_lost_before_anothers_is_in_doubt) {
  const Execute attempt = lose_outcome(1);
  proxy.plan("UpdateItem", Mishap::cut_after, 1, to_base64_of_key(1),
             [&] { EXPECT_TRUE(try_ask(*direct, found_by_provider(attempt)).has_value()); });
  const auto reply = try_ask(*store, found_by_provider(attempt));
  ASSERT_FALSE(reply.has_value());
  EXPECT_EQ(reply.error().code, StoreError::Code::in_doubt) << reply.error().detail;
  EXPECT_EQ(lines_about(1), 2U) << "its own, and the other's";
  const auto found = try_ask(*direct, Find{key(1)});
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->state, State::completed);
}

TEST_F(DynamodbSendings, S04_a_counter_whose_answer_is_lost_is_sent_and_added_once) {
  const auto before = try_ask(*store, Count{});  // Writes the counters.
  ASSERT_TRUE(before.has_value()) << before.error().detail;
  const int came = proxy.came("UpdateItem");
  proxy.plan("UpdateItem", Mishap::cut_after, 1, to_base64("counts"));
  run(*store, 1);
  const auto after = try_ask(*store, Count{});
  ASSERT_TRUE(after.has_value()) << after.error().detail;
  EXPECT_EQ(proxy.came("UpdateItem"), came + 2) << "the reserve and its counter";
  const auto running = static_cast<std::size_t>(State::in_progress);
  EXPECT_EQ(after->by_state[running], before->by_state[running] + 1);
}

TEST_F(DynamodbSendings, S04_a_claim_whose_first_write_is_in_doubt_does_not_end_as_nothing_due) {
  const auto accepted = try_ask(*store, Accept{a_reserve_in(*store, 1), "POST / please"});
  ASSERT_TRUE(accepted && is<Pending>(*accepted));
  // It was done, and it may not be sent again: the identity changes.
  proxy.plan("UpdateItem", Mishap::fail_after, 1, to_base64_of_key(1),
             [&] { begin_change_in_the_future(); });
  proxy.plan("UpdateItem", Mishap::fail_after, 10'000, to_base64_of_key(1));
  const auto claimed = try_ask(*store, Claim{token(9), "dispatcher", std::chrono::hours(1), false});
  ASSERT_FALSE(claimed.has_value());
  EXPECT_EQ(claimed.error().code, StoreError::Code::in_doubt) << claimed.error().detail;
  const auto found = try_ask(*direct, Find{key(1)});
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->state, State::in_progress);
  ASSERT_TRUE((*found)->attempt.has_value());
  EXPECT_EQ((*found)->attempt->token, token(9));
}

TEST_F(DynamodbSendings, S02_a_change_from_the_future_is_taken_back) {
  begin_change_in_the_future();
  const auto opened = open_dynamodb(dynamodb_url(shared_dynamodb_endpoint(), table),
                                    test_settings(), quick_options());
  ASSERT_TRUE(opened.has_value()) << opened.error().detail;
  run(**opened, 1);
}

TEST_F(DynamodbSendings, S04_a_reading_that_is_lost_after_a_doubt_leaves_the_doubt) {
  proxy.plan("UpdateItem", Mishap::fail_after, 1, to_base64_of_key(1),
             [&] { begin_change_in_the_future(); });
  proxy.plan("UpdateItem", Mishap::fail_after, 10'000, to_base64_of_key(1));
  proxy.plan("GetItem", Mishap::cut_before, 10'000, to_base64_of_key(1));
  const auto outcome = try_ask(*store, a_reserve_in(*store, 1));
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, StoreError::Code::in_doubt) << outcome.error().detail;
}

// A handshake that fails proves that nothing was sent, and tells nothing of the try before it.
TEST(DynamodbSendingsByTls, S04_after_a_doubt_a_try_that_cannot_be_sent_is_repeated) {
  const TempDir dir;
  Authority authority(dir.path(), "authority");
  const auto files = authority.issue({.common_name = "table", .other_names = {"IP:127.0.0.1"}});
  FaultProxy proxy(shared_dynamodb_endpoint(),
                   make_tls_server({.certificate = files.certificate, .key = files.key}));
  const auto store = open_table(dynamodb_url(proxy.endpoint(), new_dynamodb_table()) +
                                "&ca_file=" + authority.file());
  const Execute attempt = run(*store, 1);
  proxy.plan("UpdateItem", Mishap::leave, 1, to_base64_of_key(1));
  std::promise<std::expected<OwnerReply, StoreError>> settled;
  ask(*store, a_complete(attempt), [&](auto reply) { settled.set_value(std::move(reply)); });
  auto reply = settled.get_future();
  while (proxy.turned_away() < 2 && reply.wait_for(0s) != std::future_status::ready) back_off();
  proxy.come_back();
  const auto outcome = reply.get();
  ASSERT_TRUE(outcome.has_value()) << outcome.error().detail;
  EXPECT_EQ(outcome->verdict, Verdict::done);
  EXPECT_EQ(outcome->state, State::completed);
}

}  // namespace
}  // namespace idem::test
