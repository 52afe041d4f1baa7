#include <fmt/format.h>

#include <idem/foreign_call.hpp>

#include "core/bytes/hex.hpp"
#include "live/background/events.hpp"

/// Lost outcomes, settled by the provider's own events.
namespace idem::test {
namespace {

TEST_F(Events, S19_T63_an_event_settles_a_lost_answer_and_is_replayed) {
  const auto lost = ask(charge("k", "drop-after"));
  ASSERT_EQ(lost.status, 502) << lost.raw;
  const std::string ref = ref_of(lost);
  ASSERT_EQ(settled(ref), "completed") << gateway_->process().output();
  const auto replay = ask(charge("k"));
  EXPECT_EQ(replay.status, 201);
  EXPECT_NE(replay.body.find(R"("operation":")" + ref), std::string::npos);
  EXPECT_EQ(replay.get("Location"), "/charges/ch_1");
  EXPECT_EQ(effects("k"), 1);
  const Json record = record_of(ref);
  ASSERT_EQ(record["evidence"].items.size(), 1U);
  EXPECT_EQ(record["evidence"].items[0]["source"].string, "event:bank");
}

TEST_F(Events, T63_an_event_that_comes_before_the_answer_is_kept_and_applied) {
  const auto lost = ask(charge("k", "early-webhook,drop-after"));
  ASSERT_EQ(lost.status, 502) << lost.raw;
  const std::string ref = ref_of(lost);
  ASSERT_EQ(settled(ref), "completed") << gateway_->process().output();
  EXPECT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(effects("k"), 1);
  const Json record = record_of(ref);
  ASSERT_EQ(record["evidence"].items.size(), 2U);
  EXPECT_EQ(record["evidence"].items[0]["before"].string, "in_progress");
  EXPECT_FALSE(record["evidence"].items[0]["applied"].boolean);
  EXPECT_TRUE(record["evidence"].items[1]["applied"].boolean);
}

TEST_F(Events, T63_an_event_that_comes_before_the_answer_does_not_stand_in_its_way) {
  const auto first = ask(charge("k", "early-webhook"));
  EXPECT_EQ(first.status, 201);
  const auto replay = ask(charge("k"));
  EXPECT_TRUE(replays(first, replay));
  EXPECT_EQ(metric("idem_contradictions_total"), 0);
}

TEST_F(Events, T63_an_event_received_twice_counts_once) {
  const std::string ref = lose("k");
  EXPECT_EQ(send_event(succeeded(ref, fence_of(ref))).body, "{\"event\":\"applied\"}\n");
  EXPECT_EQ(send_event(succeeded(ref, fence_of(ref))).body, "{\"event\":\"known\"}\n");
  EXPECT_EQ(record_of(ref)["evidence"].items.size(), 1U);
  EXPECT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Events, T63_a_forged_event_changes_nothing) {
  const std::string ref = lose("k");
  const auto forged = send_event(succeeded(ref), "msg_1", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
  EXPECT_EQ(forged.status, 401);
  EXPECT_EQ(record_of(ref)["state"].string, "unknown");
  EXPECT_EQ(record_of(ref)["evidence"].items.size(), 0U);
  const auto unsigned_one =
      send_once(gateway_->address(), {.method = "POST",
                                      .target = "/.idem/events/bank",
                                      .fields = {{"Host", gateway_->address()}},
                                      .body = succeeded(ref)});
  EXPECT_EQ(unsigned_one.status, 401);
  EXPECT_EQ(send_event("no JSON").status, 400);
  EXPECT_EQ(send_event(std::string(70'000, ' ')).status, 413);
  const auto nobody = send_once(gateway_->address(), {.method = "POST",
                                                      .target = "/.idem/events/nobody",
                                                      .fields = {{"Host", gateway_->address()}},
                                                      .body = succeeded(ref)});
  EXPECT_EQ(nobody.status, 404);
  EXPECT_EQ(record_of(ref)["state"].string, "unknown");
}

TEST_F(Events, T63_an_event_for_a_record_that_is_gone_begins_none) {
  const std::string ref(32, 'a');
  EXPECT_EQ(send_event(succeeded(ref)).body, "{\"event\":\"noted\"}\n");
  EXPECT_EQ(send_event(succeeded(ref)).body, "{\"event\":\"known\"}\n");
  EXPECT_EQ(get("/v1/keys/" + ref).status, 404);
  EXPECT_EQ(send_event(R"({"type":"charge.succeeded","data":{"id":"ch_1"}})").body,
            "{\"event\":\"no_record\"}\n");
  EXPECT_EQ(send_event(R"({"type":"ping"})").body, "{\"event\":\"ignored\"}\n");
}

TEST_F(Events, T63_an_event_out_of_order_overwrites_nothing_and_is_an_alarm) {
  const std::string ref = lose("k");
  const std::string failed =
      R"({"type":"charge.failed","data":{"id":"ch_9","operation":")" + ref + "\"}}";
  EXPECT_EQ(send_event(succeeded(ref, fence_of(ref)), "msg_1").status, 200);
  EXPECT_EQ(send_event(failed, "msg_2").body, "{\"event\":\"noted\"}\n");
  EXPECT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(metric("idem_contradictions_total"), 1);
  EXPECT_EQ(record_of(ref)["evidence"].items.size(), 2U);
}

TEST_F(Events, T63_an_event_about_an_earlier_attempt_is_an_alarm) {
  const std::string ref = lose("k");
  const auto fence = record_of(ref)["fence"].integer;
  EXPECT_EQ(send_event(succeeded(ref, fmt::format(R"(,"fence":{})", fence - 1))).body,
            "{\"event\":\"noted\"}\n");
  EXPECT_EQ(record_of(ref)["state"].string, "unknown");
  EXPECT_EQ(metric("idem_contradictions_total"), 1);
  EXPECT_EQ(send_event(succeeded(ref, fmt::format(R"(,"fence":{})", fence)), "msg_2").body,
            "{\"event\":\"applied\"}\n");
}

TEST_F(Events, T63_an_event_that_should_name_its_attempt_and_does_not_settles_nothing) {
  const std::string ref = lose("k");
  EXPECT_EQ(send_event(succeeded(ref)).body, "{\"event\":\"noted\"}\n");
  EXPECT_EQ(send_event(succeeded(ref, R"(,"fence":"none")"), "msg_2").body,
            "{\"event\":\"noted\"}\n");
  EXPECT_EQ(record_of(ref)["state"].string, "unknown");
  EXPECT_EQ(record_of(ref)["evidence"].items.size(), 2U);
}

TEST_F(Events, T63_an_event_about_an_earlier_attempt_of_an_answered_record_is_an_alarm) {
  ASSERT_EQ(ask(charge("k", "lose-webhook")).status, 201);
  const std::string ref = only("completed")["ref"].string;
  const auto fence = record_of(ref)["fence"].integer;
  EXPECT_EQ(send_event(succeeded(ref, fmt::format(R"(,"fence":{})", fence - 1))).body,
            "{\"event\":\"noted\"}\n")
      << "two attempts, and both of them charged";
  EXPECT_EQ(metric("idem_contradictions_total"), 1);
}

TEST_F(Events, T63_a_failure_without_its_attempt_is_no_answer_either) {
  const std::string ref = lose("k");
  EXPECT_EQ(send_event(succeeded(ref)).body, "{\"event\":\"noted\"}\n")
      << "it does not say which attempt";
  const std::string failed =
      fmt::format(R"({{"type":"charge.failed","data":{{"id":"ch_9","operation":"{}"{}}}}})", ref,
                  fence_of(ref));
  EXPECT_EQ(send_event(failed, "msg_2").body, "{\"event\":\"noted\"}\n");
  EXPECT_EQ(record_of(ref)["state"].string, "unknown");
  EXPECT_EQ(metric("idem_contradictions_total"), 2);
}

TEST_F(Events, T63_a_failure_is_no_answer_where_the_work_was_reported_as_executed) {
  const std::string ref = lose("k");
  const std::string of_it = fmt::format(R"("operation":"{}"{})", ref, fence_of(ref));
  EXPECT_EQ(send_event(R"({"type":"charge.succeeded","data":{)" + of_it + "}}").body,
            "{\"event\":\"noted\"}\n")
      << "its answer has a field for the charge's id, and it tells none";
  EXPECT_EQ(
      send_event(R"({"type":"charge.failed","data":{"id":"ch_9",)" + of_it + "}}", "msg_2").body,
      "{\"event\":\"noted\"}\n");
  EXPECT_EQ(record_of(ref)["state"].string, "unknown");
  EXPECT_EQ(metric("idem_contradictions_total"), 1);
  EXPECT_EQ(send_event(succeeded(ref, fence_of(ref)), "msg_3").body, "{\"event\":\"applied\"}\n");
  EXPECT_TRUE(gateway_->process().wait_for_line("answer_contradicts_event operation_ref=" + ref +
                                                " event_id=msg_3"));
  EXPECT_EQ(ask(charge("k")).status, 201);
}

TEST_F(Events, T63_a_kept_event_counts_when_it_comes_again) {
  Connection client(gateway_->address());
  client.send(charge("k", "hold=h,drop-after,lose-webhook"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const std::string ref = only("in_progress")["ref"].string;
  const std::string fence = fence_of(ref);
  // As if events.headers pointed at fields that this provider does not send, until an operator
  // mends it.
  const std::string noted =
      fmt::format(R"({{"type":"charge.succeeded","data":{{"operation":"{}"{}}}}})", ref, fence);
  EXPECT_EQ(send_event(noted).body, "{\"event\":\"kept\"}\n");
  EXPECT_EQ(send_event(noted).body, "{\"event\":\"known\"}\n");
  provider_->release("h");
  EXPECT_EQ(client.read_response().status, 502);
  EXPECT_EQ(record_of(ref)["state"].string, "unknown");
  EXPECT_EQ(send_event(succeeded(ref, fence)).body, "{\"event\":\"applied\"}\n");
  EXPECT_EQ(send_event(succeeded(ref, fence)).body, "{\"event\":\"known\"}\n");
  EXPECT_EQ(ask(charge("k")).status, 201);
}

TEST_F(Events, T63_a_reference_is_one_providers_own) {
  const std::string banks = lose_with_reference("k", "ch_7");
  const std::string others = lose_with_reference("k", "ch_7", "/other/charges");
  ASSERT_NE(banks, others);
  EXPECT_EQ(send_event(about("ch_7", banks)).body, "{\"event\":\"applied\"}\n");
  EXPECT_EQ(record_of(banks)["state"].string, "completed");
  EXPECT_EQ(record_of(others)["state"].string, "unknown");
  EXPECT_EQ(record_of(others)["evidence"].items.size(), 0U);
}

TEST_F(Events, T63_a_reference_that_two_records_have_settles_neither) {
  const std::string one = lose_with_reference("k", "ch_7");
  const std::string two = lose_with_reference("l", "ch_7");
  EXPECT_EQ(send_event(about("ch_7", one)).body, "{\"event\":\"noted\"}\n");
  EXPECT_EQ(send_event(about("ch_7", one)).body, "{\"event\":\"noted\"}\n");
  for (const auto& ref : {one, two}) {
    EXPECT_EQ(record_of(ref)["state"].string, "unknown");
    EXPECT_EQ(record_of(ref)["evidence"].items.size(), 1U) << "and once only";
  }
}

/// Events that name their record by the upstream's reference alone.
class EventsByReference : public Events {
 protected:
  std::string operation_line() const override { return ""; }
};

TEST_F(EventsByReference, T63_one_that_comes_before_the_answer_is_asked_for_again) {
  Connection client(gateway_->address());
  client.send(charge("k", "hold=h,500-after,lose-webhook,header=Idem-Reference:ch_7"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const std::string ref = only("in_progress")["ref"].string;
  const std::string event = about("ch_7", ref);
  const auto early = send_event(event);
  EXPECT_EQ(early.status, 503);
  EXPECT_EQ(early.body, "{\"event\":\"early\"}\n");
  EXPECT_GE(std::stoi(early.get("Retry-After").value_or("0")), 1);
  EXPECT_EQ(send_event(event, "msg_2", webhook_example_secret, "other").status, 200)
      << "no attempt of that provider's is under way";
  provider_->release("h");
  EXPECT_EQ(client.read_response().status, 500);
  EXPECT_EQ(send_event(event).body, "{\"event\":\"applied\"}\n");
  EXPECT_EQ(ask(charge("k")).status, 201);
}

TEST_F(EventsByReference, T63_one_about_a_foreign_charge_waits_only_for_attempts_that_ran_then) {
  Connection first(gateway_->address());
  first.send(charge("k", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const std::string event = R"({"type":"charge.succeeded","data":{"id":"ch_99","fence":7}})";
  EXPECT_EQ(send_event(event).status, 503);
  // The store's clock counts milliseconds, and each of these takes some.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask(charge("k" + std::to_string(i))).status, 201);
  Connection second(gateway_->address());
  second.send(charge("l", "hold=later"));
  ASSERT_TRUE(provider_->wait_held("later", 1));
  provider_->release("h");
  EXPECT_EQ(first.read_response().status, 201);
  EXPECT_EQ(send_event(event).body, "{\"event\":\"no_record\"}\n");
  provider_->release("later");
  EXPECT_EQ(second.read_response().status, 201);
}

/// Events that name their record by what was sent as the upstream's own key.
class EventsByKey : public Events {
 protected:
  std::string operation_line() const override {
    return "      key: /data/key\n      derived_key: /data/derived\n      phase: charge\n";
  }
  static std::string by(std::string_view member, std::string_view value, const std::string& fence) {
    return fmt::format(R"({{"type":"charge.succeeded","data":{{"id":"ch_9","{}":"{}"{}}}}})",
                       member, value, fence);
  }
};

TEST_F(EventsByKey, T63_the_clients_key_names_a_record_that_is_unknown_or_under_way) {
  const std::string ref = lose("k");
  const auto fence = fence_of(ref);
  EXPECT_EQ(send_event(by("key", "l", fence), "msg_0").body, "{\"event\":\"no_record\"}\n");
  EXPECT_EQ(send_event(by("key", "k", fence)).body, "{\"event\":\"applied\"}\n");
  EXPECT_EQ(ask(charge("k")).status, 201);
  Connection client(gateway_->address());
  client.send(charge("m", "hold=h,drop-after,lose-webhook"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  const std::string running = only("in_progress")["ref"].string;
  EXPECT_EQ(send_event(by("key", "m", fence_of(running)), "msg_2").body, "{\"event\":\"kept\"}\n");
  provider_->release("h");
  EXPECT_EQ(client.read_response().status, 502);
  EXPECT_EQ(settled(running), "completed");
  EXPECT_EQ(metric("idem_contradictions_total"), 0);
}

TEST_F(EventsByKey, T63_a_record_that_would_run_again_is_named_as_well) {
  EXPECT_EQ(ask(charge("k", "status=429,lose-webhook")).status, 429);
  const std::string ref = only("failed_retryable")["ref"].string;
  EXPECT_EQ(send_event(by("key", "k", fence_of(ref))).body, "{\"event\":\"applied\"}\n");
  EXPECT_EQ(ask(charge("k")).status, 201) << "a retry gets the reported answer";
  EXPECT_EQ(provider_->of_key("k").arrivals, 1);
  EXPECT_EQ(ask(charge("l", "status=429,lose-webhook")).status, 429);
  const std::string other = only("failed_retryable")["ref"].string;
  const auto sent = derived_key(*parse_handle(other), "charge");
  EXPECT_EQ(send_event(by("derived", sent, fence_of(other)), "msg_2").body,
            "{\"event\":\"applied\"}\n");
  EXPECT_EQ(record_of(other)["state"].string, "completed");
}

TEST_F(EventsByKey, T63_a_record_that_would_run_again_is_held_where_the_event_names_no_attempt) {
  EXPECT_EQ(ask(charge("k", "status=429,lose-webhook")).status, 429);
  const std::string ref = only("failed_retryable")["ref"].string;
  EXPECT_EQ(send_event(by("key", "k", "")).body, "{\"event\":\"noted\"}\n");
  EXPECT_EQ(record_of(ref)["state"].string, "unknown");
  EXPECT_TRUE(is_problem(ask(charge("k")), 409, "outcome_unknown"));
  EXPECT_EQ(provider_->of_key("k").arrivals, 1);
}

TEST_F(EventsByKey, T63_a_key_that_one_would_run_again_under_as_well_holds_both) {
  const std::string ref = lose("k");
  Request second = charge("k", "status=429,lose-webhook");
  second.target = "/refunds";
  EXPECT_EQ(ask(second).status, 429);
  const std::string other = only("failed_retryable")["ref"].string;
  EXPECT_EQ(send_event(by("key", "k", fence_of(ref))).body, "{\"event\":\"noted\"}\n");
  for (const auto& one : {ref, other}) {
    EXPECT_EQ(record_of(one)["state"].string, "unknown");
    EXPECT_EQ(record_of(one)["evidence"].items.size(), 1U);
  }
  EXPECT_TRUE(is_problem(ask(second), 409, "outcome_unknown")) << "it may be what was done";
}

TEST_F(EventsByKey, T63_a_key_that_two_operations_have_names_neither) {
  const std::string ref = lose("k");
  Request second = charge("k", "drop-after,lose-webhook");
  second.target = "/refunds";
  const std::string other = ref_of(ask(second));
  ASSERT_NE(ref, other);
  EXPECT_EQ(send_event(by("key", "k", fence_of(ref))).body, "{\"event\":\"noted\"}\n");
  EXPECT_EQ(record_of(ref)["state"].string, "unknown");
  EXPECT_EQ(record_of(other)["state"].string, "unknown");
  // The work sent an id made of the record, which no other has.
  const auto sent = derived_key(*parse_handle(other), "charge");
  EXPECT_EQ(send_event(by("derived", sent, fence_of(other)), "msg_2").body,
            "{\"event\":\"applied\"}\n");
  EXPECT_EQ(record_of(ref)["state"].string, "unknown");
  EXPECT_EQ(record_of(other)["state"].string, "completed");
}

TEST_F(Events, T63_another_provider_settles_nothing_and_is_not_forgotten) {
  const std::string ref = lose("k");
  const auto noted =
      send_event(succeeded(ref, fence_of(ref)), "msg_1", webhook_example_secret, "other");
  EXPECT_EQ(noted.body, "{\"event\":\"noted\"}\n");
  const Json record = record_of(ref);
  EXPECT_EQ(record["state"].string, "unknown");
  ASSERT_GE(record["evidence"].items.size(), 1U);
  EXPECT_EQ(record["evidence"].items[0]["source"].string, "event:other");
  EXPECT_EQ(send_event(succeeded(ref, fence_of(ref))).body, "{\"event\":\"applied\"}\n");
}

TEST_F(Events, T63_a_charge_reported_before_its_negative_answer_is_not_run_again) {
  const auto first = ask(charge("k", "early-webhook,status=429"));
  EXPECT_EQ(first.status, 429) << first.raw;
  const auto listed = read("/v1/keys")["keys"].items;
  ASSERT_EQ(listed.size(), 1U);
  const std::string ref = listed[0]["ref"].string;
  ASSERT_EQ(settled(ref), "completed") << gateway_->process().output();
  EXPECT_EQ(ask(charge("k")).status, 201) << "a retry gets the reported answer";
  EXPECT_EQ(provider_->of_key("k").arrivals, 1);
  EXPECT_EQ(record_of(ref)["evidence"].items.size(), 2U);
}

TEST_F(Events, T63_an_event_about_an_answered_record_costs_no_line) {
  const auto first = ask(charge("k", "lose-webhook,header=Idem-Reference:ch_1"));
  ASSERT_EQ(first.status, 201);
  const Json record = only("completed");
  EXPECT_EQ(send_event(succeeded(record["ref"].string)).body, "{\"event\":\"agrees\"}\n");
  EXPECT_EQ(record_of(record["ref"].string)["evidence"].items.size(), 0U);
}

}  // namespace
}  // namespace idem::test
