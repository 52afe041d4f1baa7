#include "live/background/events.hpp"
#include "support/async.hpp"

/// The providers that may settle a record, and events about attempts that ended otherwise
/// (protocol.md §22).
namespace idem::test {
namespace {

std::string failed(const std::string& ref, const std::string& fence) {
  return fmt::format(R"({{"type":"charge.failed","data":{{"id":"ch_9","operation":"{}"{}}}}})", ref,
                     fence);
}

TEST_F(Events, S22_another_provider_does_not_end_a_record_that_would_run_again) {
  EXPECT_EQ(ask(charge("k", "status=429,lose-webhook")).status, 429);
  const std::string ref = only("failed_retryable")["ref"].string;
  const auto noted =
      send_event(succeeded(ref, fence_of(ref)), "msg_1", webhook_example_secret, "other");
  EXPECT_EQ(noted.body, "{\"event\":\"noted\"}\n");
  EXPECT_EQ(record_of(ref)["state"].string, "unknown") << "it is held, and not completed";
  EXPECT_EQ(metric("idem_foreign_events_total"), 1);
  EXPECT_NE(gateway_->process().output().find("event_of_another_provider"), std::string::npos);
  EXPECT_TRUE(is_problem(ask(charge("k")), 409, "outcome_unknown"));
  EXPECT_EQ(provider_->of_key("k").arrivals, 1);
  EXPECT_EQ(send_event(succeeded(ref, fence_of(ref))).body, "{\"event\":\"applied\"}\n")
      << "the one that is asked may";
  EXPECT_EQ(ask(charge("k")).status, 201);
}

TEST_F(Events, S22_another_providers_refusal_neither_frees_nor_holds) {
  EXPECT_EQ(ask(charge("k", "status=429,lose-webhook")).status, 429);
  const std::string ref = only("failed_retryable")["ref"].string;
  const auto noted =
      send_event(failed(ref, fence_of(ref)), "msg_1", webhook_example_secret, "other");
  EXPECT_EQ(noted.body, "{\"event\":\"noted\"}\n");
  EXPECT_EQ(record_of(ref)["state"].string, "failed_retryable");
  EXPECT_EQ(metric("idem_foreign_events_total"), 1);
}

TEST_F(Events, S22_another_providers_event_is_an_alarm_also_where_it_agrees) {
  ASSERT_EQ(ask(charge("k", "lose-webhook")).status, 201);
  const std::string ref = only("completed")["ref"].string;
  const auto body = succeeded(ref, fence_of(ref));
  EXPECT_EQ(send_event(body, "msg_1", webhook_example_secret, "other").body,
            "{\"event\":\"noted\"}\n");
  EXPECT_EQ(metric("idem_foreign_events_total"), 1);
  EXPECT_EQ(ask(charge("k")).status, 201) << "nothing else changes";
  EXPECT_EQ(send_event(body).body, "{\"event\":\"agrees\"}\n");
  EXPECT_EQ(metric("idem_foreign_events_total"), 1);
}

/// Holds an attempt, sends this event about it, and lets it go on.
class EventsMeanwhile : public Events {
 protected:
  Response event_meanwhile(const std::string& faults, bool is_success, std::string_view by = "bank",
                           std::string_view outcome = "kept") {
    Connection client(gateway_->address());
    client.send(charge("k", "hold=h,lose-webhook" + faults));
    EXPECT_TRUE(provider_->wait_held("h", 1));
    ref_ = only("in_progress")["ref"].string;
    const std::string fence = fence_of(ref_);
    const auto body = is_success ? succeeded(ref_, fence) : failed(ref_, fence);
    EXPECT_EQ(send_event(body, "msg_1", webhook_example_secret, by).body,
              fmt::format("{{\"event\":\"{}\"}}\n", outcome));
    provider_->release("h");
    return client.read_response();
  }
  Json shown_to_its_scope() {
    return parse_json(ask(looking_up("/.idem/operations/" + ref_)).body).value_or(Json{});
  }
  std::string ref_;
};

TEST_F(EventsMeanwhile, S22_a_kept_refusal_contests_a_positive_answer) {
  EXPECT_EQ(event_meanwhile("", false).status, 201);
  const Json record = record_of(ref_);
  EXPECT_EQ(record["state"].string, "completed");
  const Json seen = shown_to_its_scope();
  EXPECT_EQ(seen["state"].string, "completed");
  EXPECT_TRUE(seen["contested"].boolean);
  EXPECT_EQ(metric("idem_contradictions_total"), 1);
  EXPECT_NE(gateway_->process().output().find("answer_contradicts_event"), std::string::npos);
  // After a restart nothing else tells of it.
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  ASSERT_EQ(ask(charge("other")).status, 201);
  const std::vector<std::string> environment{"IDEM_ADMIN_URL=http://" + gateway_->admin()};
  const auto status = run_program(built_program("idem"), {"status"}, environment);
  EXPECT_EQ(status.exit_code, 1) << status.output;
  EXPECT_NE(status.output.find("contested: 1 record is contested"), std::string::npos)
      << status.output;
  EXPECT_EQ(read("/v1/keys")["keys"].items.size(), 2U);
  const Json page = read("/v1/keys?contested=true");
  ASSERT_EQ(page["keys"].items.size(), 1U);
  EXPECT_EQ(page["keys"].items[0]["ref"].string, ref_);
  const auto listed =
      run_program(built_program("idem"), {"keys", "list", "--contested"}, environment);
  EXPECT_EQ(listed.exit_code, 0) << listed.output;
  EXPECT_NE(listed.output.find(ref_), std::string::npos) << listed.output;
}

TEST_F(EventsMeanwhile, S22_a_kept_charge_contests_a_negative_answer) {
  EXPECT_EQ(event_meanwhile(",status=402", true).status, 402);
  EXPECT_EQ(record_of(ref_)["state"].string, "completed");
  EXPECT_EQ(metric("idem_contradictions_total"), 1);
}

TEST_F(EventsMeanwhile, S22_a_kept_event_that_agrees_contests_nothing) {
  EXPECT_EQ(event_meanwhile("", true).status, 201);
  EXPECT_EQ(shown_to_its_scope()["contested"].kind, Json::Kind::null) << "not a member";
  EXPECT_EQ(metric("idem_contradictions_total"), 0);
}

TEST_F(EventsMeanwhile, S22_another_providers_refusal_contests_no_answer_of_the_one_that_is_asked) {
  EXPECT_EQ(event_meanwhile("", false, "other", "noted").status, 201);
  const Json record = record_of(ref_);
  EXPECT_EQ(record["state"].string, "completed");
  EXPECT_FALSE(record["contested"].boolean);
  EXPECT_EQ(metric("idem_foreign_events_total"), 1);
  EXPECT_EQ(metric("idem_contradictions_total"), 0);
}

}  // namespace
}  // namespace idem::test
