#include <fmt/format.h>

#include <fstream>
#include <thread>

#include "support/admin.hpp"

/// An operator's view of failing dependencies, and of the gateway's state.
namespace idem::test {
namespace {

class StatusOf : public Operated {
 protected:
  Ran status(std::vector<std::string> words = {}) {
    words.insert(words.begin(), "status");
    return run_program(built_program("idem"), words,
                       {"IDEM_ADMIN_URL=http://" + gateway_->admin()});
  }
  bool has_trouble(const std::string& code) {
    const Json page = read("/v1/status");
    for (const Json& one : page["troubles"].items) {
      if (one["code"].string == code) return true;
    }
    return false;
  }
  int lines(std::string_view event) {
    const std::string all = gateway_->process().output();
    int count = 0;
    for (auto at = all.find(event); at != std::string::npos; at = all.find(event, at + 1)) ++count;
    return count;
  }
};

TEST_F(StatusOf, ends_with_zero_where_all_is_well) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  const auto ran = status();
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  for (const auto* part : {"all is well", "store", "upstream", "completed 1", "contested"}) {
    EXPECT_NE(ran.output.find(part), std::string::npos) << part << "\n" << ran.output;
  }
  const Json page = parse_json(status({"--json"}).output).value_or(Json{});
  EXPECT_TRUE(page["ok"].boolean);
  EXPECT_TRUE(page["upstream"]["up"].boolean);
  EXPECT_EQ(page["store"]["keys"]["completed"].integer, 1);
  EXPECT_EQ(page["unknown"]["count"].integer, 0);
  EXPECT_EQ(get("/v1/status?x=1").status, 400);
  EXPECT_EQ(post("/v1/status", "{}").status, 405);
  const auto elsewhere =
      run_program(built_program("idem"), {"status", "--admin-url", "http://" + unused_address()});
  EXPECT_EQ(elsewhere.exit_code, 3) << elsewhere.output;
}

TEST_F(StatusOf, counts_may_be_as_old_as_the_request_allows) {
  ASSERT_EQ(ask(charge("a", "drop-after")).status, 502);
  EXPECT_EQ(read("/v1/status?max_age=0")["unknown"]["for_people"].integer, 1);
  ASSERT_EQ(ask(charge("b", "drop-after")).status, 502);
  const Json aged = read("/v1/status?max_age=60");
  EXPECT_EQ(aged["unknown"]["for_people"].integer, 1) << "read less than a minute ago";
  EXPECT_EQ(aged["unknown"]["count"].integer, 2) << "the store counts each time";
  EXPECT_EQ(read("/v1/status")["unknown"]["for_people"].integer, 2);
  for (const auto* wrong : {"61", "-1", "x", "", "1&max_age=2"}) {
    EXPECT_EQ(get(fmt::format("/v1/status?max_age={}", wrong)).status, 400) << wrong;
  }
}

TEST_F(StatusOf, samples_say_what_the_last_hour_and_day_had) {
  ASSERT_EQ(ask(charge("a")).status, 201);
  ASSERT_EQ(ask(charge("a")).status, 201);
  Request other = charge("a");
  other.body = R"({"amount":1,"currency":"EUR"})";
  ASSERT_EQ(ask(other).status, 422);
  // An answer counts once it is sent.
  EXPECT_EQ(metric_from("idem_answers_total{route=\"/{rest...}\",status=\"201\"}", 2), 2);
  EXPECT_EQ(metric_from("idem_answers_total{route=\"/{rest...}\",status=\"422\"}", 1), 1);
  const auto sum = [](const Json& column) {
    std::int64_t all = 0;
    for (const Json& one : column.items) all += one.integer;
    return all;
  };
  for (const auto* span : {"hour", "day"}) {
    const Json page = read(fmt::format("/v1/samples?span={}", span));
    EXPECT_EQ(page["span"].string, span);
    EXPECT_EQ(sum(page["first"]), 1) << span;
    EXPECT_EQ(sum(page["replays"]), 1) << span;
    EXPECT_EQ(sum(page["misuse"]), 1) << span;
    EXPECT_EQ(sum(page["requests"]), 3) << span;
    EXPECT_EQ(page["end"].items.size(), page["added_ms"].items.size());
    EXPECT_TRUE(page["store_up"].items.back().boolean);
  }
  EXPECT_EQ(read("/v1/samples")["span"].string, "hour");
  for (const auto* wrong : {"?span=week", "?span=hour&span=day", "?x=1"}) {
    EXPECT_EQ(get(fmt::format("/v1/samples{}", wrong)).status, 400) << wrong;
  }
}

TEST_F(StatusOf, a_dead_upstream_is_a_line_a_count_and_a_trouble) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(metric("idem_upstream_requests_total{result=\"answered\"}"), 1);
  EXPECT_EQ(metric("idem_upstream_connect_failures_total{reason=\"connect\"}"), 0);
  EXPECT_EQ(metric_from("idem_answers_total{route=\"/{rest...}\",status=\"201\"}", 1), 1);
  const std::string address = provider_->address();
  provider_.reset();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(charge(fmt::format("d{}", i))).status, 503);
  Request unkeyed{.method = "GET", .target = "/ledger", .fields = {{"Host", "x"}}};
  EXPECT_EQ(ask(unkeyed).status, 502);
  EXPECT_EQ(metric("idem_upstream_requests_total{result=\"not_reached\"}"), 21);
  EXPECT_EQ(metric("idem_upstream_connect_failures_total{reason=\"connect\"}"), 21);
  EXPECT_EQ(metric("idem_upstream_up"), 0);
  EXPECT_EQ(metric_from("idem_answers_total{route=\"/{rest...}\",status=\"503\"}", 20), 20);
  EXPECT_EQ(metric_from("idem_answers_total{route=\"/{rest...}\",status=\"502\"}", 1), 1);
  EXPECT_TRUE(gateway_->process().wait_for_line("warning upstream_failing reason=connect"));
  EXPECT_EQ(lines("upstream_failing"), 1) << "one of 21 failures; more only in half a minute";
  EXPECT_TRUE(has_trouble("upstream_down"));
  const auto ran = status();
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  EXPECT_NE(ran.output.find("upstream_down: the upstream does not answer: connect"),
            std::string::npos)
      << ran.output;

  provider_ = std::make_unique<Provider>(address);
  ASSERT_TRUE(provider_->running());
  EXPECT_EQ(ask(charge("d0")).status, 201);
  EXPECT_TRUE(gateway_->process().wait_for_line("info upstream_recovered failures=21"));
  EXPECT_EQ(metric("idem_upstream_up"), 1);
  EXPECT_EQ(status().exit_code, 0);
}

TEST_F(StatusOf, answers_that_do_not_come_are_counted_by_reason) {
  ask(charge("cut", "drop-after"));
  EXPECT_EQ(metric("idem_upstream_requests_total{result=\"closed\"}"), 1);
  EXPECT_EQ(metric("idem_upstream_up"), 1) << "one lost answer is no outage";
  EXPECT_TRUE(gateway_->process().wait_for_line("warning upstream_failing reason=closed"));
  EXPECT_EQ(status().exit_code, 1) << "an unknown record that nobody asks about is left to people";
  EXPECT_TRUE(has_trouble("unknown_for_people"));
}

class BrokenOff : public StatusOf {
 protected:
  std::vector<std::string> flags() const override { return {"--response-body-max", "1KiB"}; }
  Response put(const std::string& faults) {
    return ask({.method = "PUT", .target = "/charges?fault=" + faults, .body = "{}"});
  }
  std::int64_t counted(const std::string& result) {
    return metric("idem_upstream_requests_total{result=\"" + result + "\"}");
  }
};

// Its client has a part already and no whole answer, so the upstream has not answered.
TEST_F(BrokenOff, T22_an_answer_that_is_relayed_is_counted_by_its_end) {
  EXPECT_EQ(put("truncate").status, 0);
  EXPECT_EQ(counted("answered"), 0);
  EXPECT_EQ(counted("cut"), 1);
  EXPECT_TRUE(gateway_->process().wait_for_line("warning upstream_failing reason=cut"));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(put("truncate-chunked").status, 0);
  EXPECT_EQ(lines("upstream_recovered"), 0) << "a head is no recovery";
  EXPECT_EQ(lines("upstream_failing"), 1);
  EXPECT_EQ(metric("idem_upstream_up"), 0);
  EXPECT_EQ(put("size=4000").status, 201);
  EXPECT_TRUE(gateway_->process().wait_for_line("info upstream_recovered failures=5"));
  EXPECT_EQ(counted("answered"), 1);
  EXPECT_EQ(counted("cut"), 5);
}

TEST_F(BrokenOff, T22_T24_so_is_one_that_is_too_large_to_keep) {
  EXPECT_EQ(ask(charge("whole", "size=4000")).status, 201);
  // The client has the last byte before the gateway counts it.
  EXPECT_EQ(metric_from("idem_upstream_requests_total{result=\"answered\"}", 1), 1);
  EXPECT_EQ(ask(charge("cut", "size=4000,truncate")).status, 0);
  EXPECT_EQ(counted("answered"), 1);
  EXPECT_EQ(counted("cut"), 1);
  EXPECT_TRUE(gateway_->process().wait_for_line("warning upstream_failing reason=cut"));
  EXPECT_TRUE(is_problem(ask(charge("cut")), 409, "response_not_stored"));
}

class JsonStatus : public StatusOf {
 protected:
  std::vector<std::string> flags() const override {
    return {"--log-format", "json", "--log-requests"};
  }
};

TEST_F(JsonStatus, numbers_of_a_log_in_json_are_numbers_and_texts_of_digits_are_texts) {
  const auto one = ask(with(without(charge("k"), "X-Tenant-Id"), "X-Tenant-Id", "42"));
  ASSERT_EQ(one.status, 201);
  const auto line = gateway_->process().wait_for_line(R"("event":"request")");
  ASSERT_TRUE(line);
  const Json read_line = parse_json(*line).value_or(Json{});
  EXPECT_EQ(read_line["status"].integer, 201) << *line;
  EXPECT_NE(read_line["total_ms"].kind, Json::Kind::string) << *line;
  EXPECT_EQ(read_line["route"].kind, Json::Kind::string);
  EXPECT_EQ(read_line["level"].string, "info");
  EXPECT_EQ(read_line["time"].string.size(), 24U);
}

TEST_F(StatusOf, lines_of_text_have_their_time_and_level) {
  const auto line = gateway_->process().wait_for_line("listening address=");
  ASSERT_TRUE(line);
  ASSERT_GT(line->size(), 24U) << *line;
  EXPECT_EQ(line->at(10), 'T');
  EXPECT_EQ(line->at(23), 'Z');
  EXPECT_TRUE(line->substr(24).starts_with(" info listening address=")) << *line;
}

class DeadProvider : public StatusOf {
 protected:
  std::vector<std::string> flags() const override {
    const auto file = (dir_.path() / "idem.yaml").string();
    std::ofstream(file) << fmt::format(
        "providers:\n"
        "  - name: bank\n"
        "    url: \"http://{}/charges?operation={{operation}}\"\n"
        "    found: [\"200 /charges/0\"]\n"
        "    not_there: [\"200 !/charges/0\"]\n"
        "    retry_first: 50ms\n"
        "    retry_max: 50ms\n"
        "    attempts: 3\n"
        "routes:\n"
        "  - match: {{ path: \"/{{rest...}}\" }}\n"
        "    reconcile: bank\n",
        dead_);
    return {"--config", file};
  }
  std::string dead_ = unused_address();
};

TEST_F(DeadProvider, S19_is_a_line_counts_and_evidence_from_the_first_turn_on) {
  EXPECT_EQ(metric("idem_provider_failures_total{provider=\"bank\",reason=\"connect\"}"), 0);
  EXPECT_EQ(metric("idem_provider_up{provider=\"bank\"}"), 1);
  const auto lost = ask(charge("k", "drop-after"));
  ASSERT_EQ(lost.status, 502);
  EXPECT_TRUE(
      gateway_->process().wait_for_line("warning provider_failing provider=bank "
                                        "reason=connect"));
  ASSERT_TRUE(gateway_->process().wait_for_line("reconcile_given_up"));
  EXPECT_EQ(lines("provider_failing"), 1) << "not one for each turn";
  EXPECT_EQ(metric("idem_provider_failures_total{provider=\"bank\",reason=\"connect\"}"), 3);
  const auto ref = parse_json(lost.body).value_or(Json{})["operation_ref"].string;
  const Json record = read("/v1/keys/" + ref);
  ASSERT_EQ(record["evidence"].items.size(), 2U);
  const Json& evidence = record["evidence"].items[0];
  EXPECT_EQ(evidence["source"].string, "poll:bank");
  EXPECT_TRUE(evidence["reason"].string.starts_with("no answer: ")) << evidence["reason"].string;
  EXPECT_FALSE(evidence["applied"].boolean);
  const auto ran = status();
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_NE(ran.output.find("provider bank"), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find("last failure"), std::string::npos) << ran.output;
  EXPECT_TRUE(has_trouble("unknown_for_people"));
}

}  // namespace
}  // namespace idem::test
