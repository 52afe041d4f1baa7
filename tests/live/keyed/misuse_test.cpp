#include <gtest/gtest.h>

#include <string>

#include "support/live.hpp"

namespace idem::test {
namespace {

using Misuse = Live;

TEST_F(Misuse, V02_other_body_is_refused_and_the_record_untouched) {
  const auto first = ask(charge("k", "", R"({"amount":1})"));
  const auto other = ask(charge("k", "", R"({"amount":2})"));
  EXPECT_TRUE(is_problem(other, 422, "key_reused"));
  EXPECT_EQ(json_text(other.body, "retry"), "new_key_safe");
  EXPECT_TRUE(replays(first, ask(charge("k", "", R"({"amount":1})"))));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Misuse, T04_beats_in_progress) {
  Connection first(gateway_->address());
  first.send(charge("k", "hold=h", R"({"amount":1})"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  EXPECT_TRUE(is_problem(ask(charge("k", "", R"({"amount":2})")), 422, "key_reused"));
  EXPECT_TRUE(is_problem(ask(charge("k", "", R"({"amount":1})")), 409, "in_progress"));
  provider_->release("h");
  EXPECT_EQ(first.read_response().status, 201);
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Misuse, T04_beats_unknown) {
  ask(charge("k", "drop-after", R"({"amount":1})"));
  EXPECT_TRUE(is_problem(ask(charge("k", "", R"({"amount":2})")), 422, "key_reused"));
  EXPECT_TRUE(is_problem(ask(charge("k", "", R"({"amount":1})")), 409, "outcome_unknown"));
}

TEST_F(Misuse, T42_the_query_is_part_of_the_fingerprint) {
  auto dry = charge("k");
  dry.target = "/charges?dry_run=true";
  EXPECT_EQ(ask(dry).status, 201);
  EXPECT_TRUE(is_problem(ask(charge("k")), 422, "key_reused"));
}

TEST_F(Misuse, T41_the_whole_body_counts) {
  const std::string prefix(200'000, 'x');
  EXPECT_EQ(ask(charge("k", "", prefix + "1")).status, 201);
  EXPECT_TRUE(is_problem(ask(charge("k", "", prefix + "2")), 422, "key_reused"));
}

TEST_F(Misuse, T40_nothing_is_not_the_same_as_something) {
  EXPECT_EQ(ask(charge("k", "", "")).status, 201);
  EXPECT_TRUE(is_problem(ask(charge("k", "", "{}")), 422, "key_reused"));
}

TEST_F(Misuse, T43_V08_another_spelling_of_the_same_json_replays) {
  const auto first = ask(charge("k", "", R"({"amount":10,"to":{"a":1,"b":[1,2]}})"));
  for (const auto* same : {R"({ "to": {"b":[1, 2],"a":1},  "amount": 10 })",
                           "{\"amount\":1e1,\n\"to\":{\"a\":1.0,\"b\":[1,2]}}"}) {
    EXPECT_TRUE(replays(first, ask(charge("k", "", same)))) << same;
  }
  EXPECT_TRUE(is_problem(ask(charge("k", "", R"({"amount":10,"to":{"a":1,"b":[2,1]}})")), 422,
                         "key_reused"));
}

TEST_F(Misuse, T44_numbers_that_a_double_cannot_tell_apart_stay_apart) {
  EXPECT_EQ(ask(charge("k", "", R"({"amount":9007199254740993})")).status, 201);
  EXPECT_TRUE(
      is_problem(ask(charge("k", "", R"({"amount":9007199254740992})")), 422, "key_reused"));
}

Request encoded(std::string body, const std::string& coding) {
  return with(charge("k", "", std::move(body)), "Content-Encoding", coding);
}

// The same JSON, compressed a second later, has other bytes: a new key would pay again.
TEST_F(Misuse, S05_no_new_key_is_advised_where_a_body_is_encoded) {
  const std::string json = R"({"amount":1})";
  const auto first = ask(encoded("bytes of one second", "gzip"));
  ASSERT_EQ(first.status, 201);
  for (const auto& retry : {encoded("bytes of the next second", "gzip"), charge("k", "", json)}) {
    const auto refused = ask(retry);
    EXPECT_TRUE(is_problem(refused, 422, "key_reused"));
    EXPECT_EQ(json_text(refused.body, "retry"), "never") << refused.body;
    EXPECT_NE(json_text(refused.body, "detail").find("Content-Encoding"), std::string::npos);
  }
  EXPECT_TRUE(replays(first, ask(encoded("bytes of one second", "gzip"))));
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Misuse, S05_no_new_key_is_advised_where_only_our_rule_for_numbers_differs) {
  ASSERT_EQ(ask(charge("k", "", R"({"amount":333333333.33333329})")).status, 201);
  const auto refused = ask(charge("k", "", R"({"amount":333333333.3333333})"));
  EXPECT_TRUE(is_problem(refused, 422, "key_reused"));
  EXPECT_EQ(json_text(refused.body, "retry"), "never");
  EXPECT_NE(json_text(refused.body, "detail").find("RFC 8785"), std::string::npos);
  const auto other = ask(charge("k", "", R"({"amount":333333333.4})"));
  EXPECT_EQ(json_text(other.body, "retry"), "new_key_safe");
}

TEST_F(Misuse, S05_no_new_key_is_advised_where_idem_does_not_read_the_body) {
  const auto xml = [](std::string body) {
    return with(without(charge("k", "", std::move(body)), "Content-Type"), "Content-Type",
                "application/xml");
  };
  ASSERT_EQ(ask(xml("<pay a='1' b='2'/>")).status, 201);
  const auto refused = ask(xml("<pay b='2' a='1'/>"));
  EXPECT_TRUE(is_problem(refused, 422, "key_reused"));
  EXPECT_EQ(json_text(refused.body, "retry"), "never");
}

TEST_F(Misuse, T44_duplicate_members_are_not_last_wins) {
  EXPECT_EQ(ask(charge("k", "", R"({"amount":1,"amount":2})")).status, 201);
  EXPECT_TRUE(is_problem(ask(charge("k", "", R"({"amount":2})")), 422, "key_reused"));
}

TEST_F(Misuse, the_media_type_counts_and_its_parameters_do_not) {
  const auto json = charge("k", "", "{}");
  const auto first = ask(json);
  auto charset = without(json, "Content-Type");
  EXPECT_TRUE(
      replays(first, ask(with(charset, "Content-Type", "application/json; charset=utf-8"))));
  EXPECT_TRUE(is_problem(ask(with(charset, "Content-Type", "text/plain")), 422, "key_reused"));
}

}  // namespace
}  // namespace idem::test
