#include "store_conformance/dynamodb/asking.hpp"
#include "store_conformance/dynamodb/fault_proxy.hpp"

/// Answers, requests and logs that are larger than an item of DynamoDB may be.
namespace idem::test {
namespace {

class DynamodbLarge : public testing::Test {
 protected:
  std::string table = new_dynamodb_table();
  FaultProxy proxy{shared_dynamodb_endpoint()};
  std::unique_ptr<Store> store = open_table(dynamodb_url(proxy.endpoint(), table));

  std::size_t pieces() const {
    std::size_t count = 0;
    for (const Json& item : dynamodb_items(shared_dynamodb_endpoint(), table)) {
      if (dynamodb_text(item, {"p"}).contains("\"S\":\"p")) ++count;
    }
    return count;
  }
};

std::string body_of_bytes(std::size_t bytes) {
  std::string body(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) body[i] = static_cast<char>(i * 7 + i / 251);
  return body;
}

TEST_F(DynamodbLarge, S14_answers_of_every_size_are_replayed_byte_for_byte) {
  int number = 0;
  for (const std::size_t bytes : {131'000UL, 132'000UL, 400'000UL, 1'048'576UL, 5'000'000UL}) {
    const Execute attempt = run(*store, ++number);
    const StoredResponse stored = answer(200, body_of_bytes(bytes));
    const auto settled = try_ask(*store, a_complete(attempt, stored));
    ASSERT_TRUE(settled.has_value()) << settled.error().detail;
    EXPECT_EQ(settled->verdict, Verdict::done);
    const auto again = try_ask(*store, a_reserve_in(*store, number, 2));
    ASSERT_TRUE(again.has_value()) << again.error().detail;
    ASSERT_TRUE(is<Replay>(*again)) << describe(*again);
    EXPECT_TRUE(std::get<Replay>(*again).response == stored) << bytes;
  }
}

TEST_F(DynamodbLarge, S07_a_large_request_is_claimed_as_it_was) {
  Accept verb = an_accept(1, body_of_bytes(900'000));
  verb.as.generation = store->identity().generation;
  ASSERT_TRUE(is<Pending>(*try_ask(*store, verb)));
  const auto claimed = try_ask(*store, Claim{token(9), "dispatcher", lease, true});
  ASSERT_TRUE(claimed && *claimed);
  EXPECT_TRUE((*claimed)->request == verb.request);
  const Execute attempt{(*claimed)->id, (*claimed)->attempt, {}};
  EXPECT_EQ(try_ask(*store, a_complete(attempt))->verdict, Verdict::done);
}

TEST_F(DynamodbLarge, S04_a_crash_between_the_pieces_and_the_record_leaves_the_attempt_running) {
  const Execute attempt = run(*store, 1);
  // The pieces arrive; the record's write never does.
  proxy.plan("UpdateItem", Mishap::cut_before, 10'000, "\"#ap\":\"ap\"");
  const auto settled = try_ask(*store, a_complete(attempt, answer(200, body_of_bytes(400'000))));
  ASSERT_FALSE(settled.has_value());
  const auto other = open_table(dynamodb_url(shared_dynamodb_endpoint(), table));
  EXPECT_TRUE(is<InProgress>(*try_ask(*other, a_reserve_in(*other, 1, 2))));
  EXPECT_GT(pieces(), 0u);
  const StoredResponse second = answer(201, body_of_bytes(500'000));
  EXPECT_EQ(try_ask(*other, a_complete(attempt, second))->verdict, Verdict::done);
  const auto again = try_ask(*other, a_reserve_in(*other, 1, 2));
  ASSERT_TRUE(again && is<Replay>(*again));
  EXPECT_TRUE(std::get<Replay>(*again).response == second);
}

TEST_F(DynamodbLarge, S22_a_missing_piece_is_damage_and_no_replay) {
  const Execute attempt = run(*store, 1);
  ASSERT_TRUE(
      try_ask(*store, a_complete(attempt, answer(200, body_of_bytes(800'000)))).has_value());
  const std::string endpoint = shared_dynamodb_endpoint();
  for (const Json& item : dynamodb_items(endpoint, table)) {
    const std::string key_of_item = dynamodb_text(item, {"p", "s"});
    if (!key_of_item.contains("\"S\":\"p")) continue;
    ask_dynamodb(endpoint, "DeleteItem",
                 "{\"TableName\":\"" + table + "\",\"Key\":" + key_of_item + "}");
    break;
  }
  const auto again = try_ask(*store, a_reserve_in(*store, 1, 2));
  ASSERT_FALSE(again.has_value()) << describe(*again);
  EXPECT_EQ(again.error().code, StoreError::Code::damaged);
}

TEST_F(DynamodbLarge, S19_a_long_log_keeps_every_line_in_order) {
  const Execute attempt = run(*store, 1);
  ASSERT_TRUE(try_ask(*store, a_mark_unknown(attempt)).has_value());
  constexpr int lines = 40;
  for (int i = 0; i < lines; ++i) {
    Reschedule verb{key(1), attempt.attempt.fence, static_cast<std::uint32_t>(i), 1s};
    verb.source = "provider";
    verb.evidence = std::to_string(i) + std::string(4'000, 'x');
    const auto reply = try_ask(*store, verb);
    ASSERT_TRUE(reply.has_value()) << reply.error().detail;
  }
  const auto log = try_ask(*store, ReadEvidence{key(1)});
  ASSERT_TRUE(log.has_value()) << log.error().detail;
  ASSERT_EQ(log->size(), static_cast<std::size_t>(lines));
  for (int i = 0; i < lines; ++i) {
    EXPECT_EQ((*log)[static_cast<std::size_t>(i)].evidence.substr(0, 2),
              (std::to_string(i) + "x").substr(0, 2));
  }
}

}  // namespace
}  // namespace idem::test
