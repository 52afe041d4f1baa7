#include "store_conformance/faults.hpp"
#include "store_conformance/dynamodb/asking.hpp"
#include "store_conformance/dynamodb/fault_proxy.hpp"
#include "support/back_off.hpp"

/// The store in DynamoDB when the service, or the way there, fails.
namespace idem::test {
namespace {

class DynamodbFaults : public testing::Test {
 protected:
  std::string table = new_dynamodb_table();
  FaultProxy proxy{shared_dynamodb_endpoint()};
  std::unique_ptr<Store> store = open_table(dynamodb_url(proxy.endpoint(), table));

  /// The first reserve also says that the identity is in use.
  void SetUp() override { run(*store, 200); }
};

TEST_F(DynamodbFaults, S04_two_duplicates_whose_reply_was_lost_are_one_execution) {
  const std::string own = new_dynamodb_table();
  const std::string endpoint = shared_dynamodb_endpoint();
  CuttingProxy cutting(endpoint.substr(endpoint.rfind('/') + 1));
  const auto cut =
      open_table(dynamodb_url("http://127.0.0.1:" + std::to_string(cutting.port()), own));
  run(*cut, 200);
  lose_replies_to_duplicates(*cut, cutting, "UpdateItem");
}

TEST_F(DynamodbFaults, S04_a_settling_write_whose_reply_was_lost_is_reported_as_done) {
  const std::string own = new_dynamodb_table();
  const std::string endpoint = shared_dynamodb_endpoint();
  CuttingProxy cutting(endpoint.substr(endpoint.rfind('/') + 1));
  const auto cut =
      open_table(dynamodb_url("http://127.0.0.1:" + std::to_string(cutting.port()), own));
  run(*cut, 200);
  lose_replies_to_completions(*cut, cutting, "UpdateItem", {Verdict::done});
}

TEST_F(DynamodbFaults, S04_whatever_becomes_of_a_write_one_of_two_duplicates_executes) {
  int round = 0;
  for (const Mishap mishap :
       {Mishap::throttle, Mishap::fail, Mishap::fail_after, Mishap::cut_before, Mishap::cut_after,
        Mishap::twice, Mishap::damage}) {
    for (int times = 1; times <= 3; ++times) {
      ++round;
      const int before = proxy.met();
      proxy.plan("UpdateItem", mishap, times, to_base64_of_key(round));
      int executed = 0;
      for (int i = 1; i <= 2; ++i) {
        const auto outcome = try_ask(*store, a_reserve_in(*store, round, i));
        ASSERT_TRUE(outcome.has_value()) << outcome.error().detail;
        if (is<Execute>(*outcome)) ++executed;
      }
      EXPECT_EQ(executed, 1) << "round " << round;
      EXPECT_GT(proxy.met(), before) << "round " << round;
    }
  }
}

TEST_F(DynamodbFaults, S04_a_throttled_settling_write_is_repeated_within_its_time) {
  const Execute attempt = run(*store, 1);
  proxy.plan("UpdateItem", Mishap::throttle, 4, to_base64_of_key(1));
  const auto reply = try_ask(*store, a_complete(attempt));
  ASSERT_TRUE(reply.has_value()) << reply.error().detail;
  EXPECT_EQ(reply->verdict, Verdict::done);
}

TEST_F(DynamodbFaults, S04_a_service_that_throttles_on_is_unavailable_and_ran_nothing) {
  proxy.plan("UpdateItem", Mishap::throttle, 10'000, to_base64_of_key(1));
  const auto outcome = try_ask(*store, a_reserve_in(*store, 1));
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, StoreError::Code::unavailable) << outcome.error().detail;
}

TEST_F(DynamodbFaults, S04_a_service_that_fails_on_leaves_a_doubt) {
  const Execute attempt = run(*store, 1);
  proxy.plan("UpdateItem", Mishap::fail_after, 10'000, to_base64_of_key(1));
  const auto settled = try_ask(*store, a_complete(attempt));
  ASSERT_FALSE(settled.has_value());
  EXPECT_EQ(settled.error().code, StoreError::Code::in_doubt) << settled.error().detail;
}

TEST_F(DynamodbFaults, S04_a_reserve_in_doubt_is_settled_by_reading_once_it_may_not_be_sent_again) {
  proxy.plan("UpdateItem", Mishap::fail_after, 10'000, to_base64_of_key(1));
  const auto outcome = try_ask(*store, a_reserve_in(*store, 1));
  if (outcome) {
    ASSERT_TRUE(is<Execute>(*outcome)) << describe(*outcome);
    EXPECT_EQ(std::get<Execute>(*outcome).attempt.token, token(1));
  } else {
    EXPECT_EQ(outcome.error().code, StoreError::Code::in_doubt) << outcome.error().detail;
  }
  const auto found = try_ask(*store, Find{key(1)});
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->attempt->token, token(1));
}

TEST_F(DynamodbFaults, S04_an_endpoint_that_is_gone_is_unavailable_at_once) {
  DynamodbServer own;
  const auto alone = open_table(dynamodb_url(own.endpoint(), new_dynamodb_table()));
  run(*alone, 1);
  own.crash();
  const auto outcome = try_ask(*alone, a_reserve_in(*alone, 2));
  ASSERT_FALSE(outcome.has_value());
  EXPECT_NE(outcome.error().code, StoreError::Code::refused) << outcome.error().detail;
}

TEST_F(DynamodbFaults, S22_damage_on_the_way_is_no_answer) {
  const Execute attempt = run(*store, 1);
  ASSERT_TRUE(try_ask(*store, a_complete(attempt)).has_value());
  proxy.plan("GetItem", Mishap::damage, 2, to_base64_of_key(1));
  const auto found = try_ask(*store, Find{key(1)});
  ASSERT_TRUE(found.has_value()) << found.error().detail;
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->response, answer());
}

TEST_F(DynamodbFaults, S04_a_lost_answer_to_an_append_is_found_again) {
  for (std::uint64_t last = 0; last < 4; ++last) {
    proxy.plan("UpdateItem", last % 2 == 0 ? Mishap::cut_after : Mishap::fail_after, 1, "\"#n = :");
    const auto reply = try_ask(*store, AppendLine{"audit", last, "line"});
    ASSERT_TRUE(reply.has_value()) << reply.error().detail;
    EXPECT_TRUE(reply->appended);
    EXPECT_EQ(reply->last, last + 1);
  }
  const auto lines = try_ask(*store, ReadLines{"audit"});
  ASSERT_TRUE(lines.has_value());
  EXPECT_EQ(lines->lines.size(), 4u);
}

// ---- many lines of a journal at once ----

/// Each behind the one before it, from `after` on.
std::vector<StoreCall> lines_after(std::uint64_t after, int count, const std::string& text) {
  std::vector<StoreCall> calls;
  for (int i = 0; i < count; ++i) {
    calls.emplace_back(AppendLine{"audit", after, text + std::to_string(after)});
    ++after;
  }
  return calls;
}

int appended_of(Store& store, std::vector<StoreCall> calls) {
  int appended = 0;
  for (const auto& reply : ask_at_once(store, std::move(calls))) {
    appended += reply && std::get<AppendLine::Reply>(*reply).appended ? 1 : 0;
  }
  return appended;
}

void expect_lines(Store& store, const std::vector<std::string>& expected) {
  const auto read = try_ask(store, ReadLines{.journal = "audit", .limit = 1'000});
  ASSERT_TRUE(read) << read.error().detail;
  ASSERT_EQ(read->lines.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(read->lines[i].bytes, expected[i]);
    EXPECT_FALSE(read->lines[i].is_damaged);
  }
}

// A copy of an audit sent three requests for each line, one after the other.
TEST_F(DynamodbFaults, S22_lines_that_come_at_once_are_appended_together) {
  const int before = proxy.came("GetItem");
  EXPECT_EQ(appended_of(*store, lines_after(0, 300, "line ")), 300);
  EXPECT_LT(proxy.came("GetItem") - before, 30);
  std::vector<std::string> expected;
  for (int i = 0; i < 300; ++i) expected.push_back("line " + std::to_string(i));
  expect_lines(*store, expected);
  // Also beside others: of two for one place one is appended.
  auto twice = lines_after(300, 40, "line ");
  for (StoreCall& call : lines_after(300, 40, "other ")) twice.push_back(std::move(call));
  EXPECT_EQ(appended_of(*store, std::move(twice)), 40);
  for (int i = 300; i < 340; ++i) expected.push_back("line " + std::to_string(i));
  expect_lines(*store, expected);
}

TEST_F(DynamodbFaults, S04_lines_whose_answers_are_lost_are_there_once) {
  std::vector<std::string> expected;
  for (const Mishap mishap : {Mishap::cut_after, Mishap::fail_after, Mishap::twice}) {
    const std::uint64_t last = expected.size();
    const int before = proxy.met();
    proxy.plan("UpdateItem", mishap, 3, R"("S":"l)");   // The items of lines,
    proxy.plan("UpdateItem", mishap, 1, R"("S":"j")");  // and the head.
    EXPECT_EQ(appended_of(*store, lines_after(last, 50, "line ")), 50);
    EXPECT_EQ(proxy.met(), before + 4);
    for (std::uint64_t i = last; i < last + 50; ++i)
      expected.push_back("line " + std::to_string(i));
  }
  expect_lines(*store, expected);
}

TEST_F(DynamodbFaults, S04_lines_that_no_head_counted_are_written_over) {
  std::vector<std::string> expected;
  EXPECT_EQ(appended_of(*store, lines_after(0, 2, "line ")), 2);
  proxy.plan("UpdateItem", Mishap::throttle, 10'000, R"("S":"j")");
  EXPECT_EQ(appended_of(*store, lines_after(2, 20, "lost ")), 0);
  const auto other = open_table(dynamodb_url(shared_dynamodb_endpoint(), table));
  EXPECT_EQ(appended_of(*other, lines_after(2, 30, "line ")), 30);
  for (int i = 0; i < 32; ++i) expected.push_back("line " + std::to_string(i));
  expect_lines(*other, expected);
  const auto reply = try_ask(*other, DropJournal{"audit", 32});
  EXPECT_FALSE(reply);
}

// ---- a change of the identity ----

AdoptRoutes routes_of(const std::string& name) {
  return {{{.methods = {"POST"}, .pattern = "/" + name, .name = name}}, {}};
}

TEST_F(DynamodbFaults, S02_a_change_waits_for_the_nodes_that_reserve) {
  const auto other = open_table(dynamodb_url(proxy.endpoint(), table));
  run(*other, 1);
  const std::uint64_t before = other->identity().generation;
  const auto began = MonotonicClock::now();
  const auto adopted = try_ask(*store, routes_of("pay"));
  ASSERT_TRUE(adopted.has_value()) << adopted.error().detail;
  ASSERT_EQ(adopted->why_not, "");
  EXPECT_GT(adopted->generation, before);
  EXPECT_GE(MonotonicClock::now() - began, quick_options().waits.change);
  const auto late = try_ask(*other, a_reserve_in(*other, 2));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, StoreError::Code::refused) << late.error().detail;
}

TEST_F(DynamodbFaults, S02_a_first_start_waits_for_nothing) {
  DynamodbOptions patient = quick_options();
  patient.waits.change = 1h;
  const auto first = open_table(dynamodb_url(proxy.endpoint(), new_dynamodb_table()), patient);
  const auto adopted = try_ask(*first, routes_of("pay"));
  ASSERT_TRUE(adopted.has_value()) << adopted.error().detail;
  EXPECT_EQ(adopted->why_not, "");
}

TEST_F(DynamodbFaults,
       S02_a_reserve_that_comes_after_the_change_makes_no_record_under_its_old_name) {
  const auto other = open_table(dynamodb_url(proxy.endpoint(), table));
  run(*other, 201);
  // The store sends it again, and those do not arrive.
  proxy.plan("UpdateItem", Mishap::hold, 1, to_base64_of_key(1));
  proxy.plan("UpdateItem", Mishap::cut_before, 100, to_base64_of_key(1));
  std::promise<void> done;
  ask(*other, a_reserve_in(*other, 1), [&](auto) { done.set_value(); });
  while (proxy.met() == 0) back_off();
  const auto adopted = try_ask(*store, routes_of("pay"));
  ASSERT_TRUE(adopted && adopted->why_not.empty());
  done.get_future().wait();
  // The record was renamed: a retry looks under both names, and runs under the new one.
  const auto direct = open_table(dynamodb_url(shared_dynamodb_endpoint(), table));
  Reserve verb = a_reserve_in(*direct, 2, 2);
  verb.generation = adopted->generation;
  verb.also = {{key(1), {}}};
  const auto first = ask_and_wait(*direct, verb);
  ASSERT_TRUE(first.has_value()) << first.error().detail;
  EXPECT_TRUE(is<Execute>(*first)) << describe(*first);
  const std::vector<int> statuses = proxy.release();
  ASSERT_EQ(statuses.size(), 1u);
  EXPECT_EQ(statuses[0], 400) << "its condition no longer holds";
  const auto found = try_ask(*direct, Find{key(1)});
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->has_value()) << "one of the two names has a record";
}

}  // namespace
}  // namespace idem::test
