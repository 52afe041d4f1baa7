#include <fmt/format.h>

#include <fstream>
#include <map>
#include <thread>

#include "support/admin.hpp"
#include "support/moved_clock.hpp"

namespace idem::test {
namespace {

class Metrics : public Operated {
 protected:
  std::vector<std::string> flags() const override {
    return {"--lease", "60s", "--upstream-timeout", "30s"};
  }

  double reserves(std::string_view outcome) {
    return metric(fmt::format("idem_reserve_total{{outcome=\"{}\"}}", outcome));
  }
  double keys(std::string_view state) {
    return metric(fmt::format("idem_keys{{state=\"{}\"}}", state));
  }
};

TEST_F(Metrics, V31_each_outcome_of_a_reserve_moves_its_own_counter_and_no_other) {
  struct Step {
    const char* outcome;
    Request request;
  };
  ask(charge("refused", "refuse=429"));
  ask(charge("lost", "drop-after"));
  std::map<std::string, double> expected{{"created", 2},    {"replay", 0},  {"in_progress", 0},
                                         {"key_misuse", 0}, {"unknown", 0}, {"failed_retry", 0},
                                         {"expired", 0}};
  const Step steps[] = {{"created", charge("k")},
                        {"replay", charge("k")},
                        {"key_misuse", charge("k", "", "{}")},
                        {"unknown", charge("lost")},
                        {"failed_retry", charge("refused")},
                        {"replay", charge("refused")}};
  for (const auto& step : steps) {
    ask(step.request);
    ++expected[step.outcome];
    for (const auto& [outcome, count] : expected) {
      EXPECT_EQ(reserves(outcome), count) << outcome << " after " << step.outcome;
    }
  }
  auto first = std::thread([&] { ask(charge("slow", "hold=h")); });
  ASSERT_TRUE(provider_->wait_held("h", 1));
  EXPECT_EQ(ask(charge("slow")).status, 409);
  EXPECT_EQ(reserves("in_progress"), 1);
  EXPECT_EQ(keys("in_progress"), 1);
  provider_->release("h");
  first.join();
  EXPECT_EQ(keys("in_progress"), 0);
}

TEST_F(Metrics, V31_releases_unknowns_and_resolutions_are_counted) {
  EXPECT_EQ(metric("idem_oldest_unknown_age_seconds"), 0);
  ask(charge("declared", "refuse=429"));
  EXPECT_EQ(metric("idem_release_total{basis=\"declared\"}"), 1);
  EXPECT_EQ(metric("idem_release_total{basis=\"proven\"}"), 0);
  ask(charge("proven", "refuse=421"));
  EXPECT_EQ(metric("idem_release_total{basis=\"proven\"}"), 1);
  ask(charge("lost", "drop-after"));
  EXPECT_EQ(keys("unknown"), 1);
  EXPECT_EQ(keys("failed_retryable"), 2);
  const Json lost = only("unknown");
  const auto target = "/v1/keys/" + lost["ref"].string + "/resolve";
  const auto resolving = [&](std::int64_t fence) {
    return fmt::format(R"({{"as":"completed","fence":{},"evidence":"e","reason":"r",)"
                       R"("response":{{"status":201}}}})",
                       fence);
  };
  EXPECT_EQ(post(target, resolving(lost["fence"].integer + 1)).status, 409);
  EXPECT_EQ(metric("idem_reconcile_total{result=\"failed\"}"), 1);
  EXPECT_EQ(metric("idem_reconcile_total{result=\"resolved\"}"), 0);
  EXPECT_EQ(post(target, resolving(lost["fence"].integer)).status, 200);
  EXPECT_EQ(metric("idem_reconcile_total{result=\"resolved\"}"), 1);
  EXPECT_EQ(metric("idem_reconcile_total{result=\"scheduled\"}"), 0) << "nothing schedules yet";
  EXPECT_EQ(keys("unknown"), 0);
  EXPECT_EQ(keys("completed"), 1);
  EXPECT_EQ(metric("idem_oldest_unknown_age_seconds"), 0);
}

TEST_F(Metrics, V31_the_counts_by_state_are_kept_over_a_restart) {
  for (int i = 0; i < 3; ++i) ask(charge(fmt::format("k{}", i)));
  ask(charge("lost", "drop-after"));
  // A store on DynamoDB adds to its counts a moment later, and before it is asked for them.
  EXPECT_EQ(keys("completed"), 3);
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  EXPECT_EQ(keys("completed"), 3);
  EXPECT_EQ(keys("unknown"), 1);
  // Its clock is exact to a second at first.
  const bool is_coarse = live_store_kind() == "dynamodb";
  EXPECT_GT(metric("idem_oldest_unknown_age_seconds"), is_coarse ? -1e-9 : 0);
  EXPECT_EQ(reserves("created"), 0) << "counters begin with the process";
}

TEST_F(Metrics, V31_expired_and_pruned_records_are_counted) {
  IDEM_NEED_PROGRAM("idem-crash");
  auto short_lived = options(provider_->address());
  MovedClock clock;
  short_lived.store = dir_.path() / "short.db";
  short_lived.flags = {"--retention", "1h"};
  short_lived.program = "idem-crash";
  short_lived.environment = {clock.environment()};
  gateway_ = std::make_unique<Gateway>(short_lived);
  ASSERT_TRUE(gateway_->running());
  clock.move_also_under(short_lived.store);
  EXPECT_EQ(ask(charge("k")).status, 201);
  clock.pass(3601);
  EXPECT_TRUE(is_problem(ask(charge("k")), 410, "key_expired"));
  EXPECT_EQ(reserves("expired"), 1);
  ASSERT_TRUE(gateway_->process().wait_for_line("reaped"));
  EXPECT_EQ(metric("idem_ttl_pruned_total"), 1);
  EXPECT_GE(metric("idem_reap_oldest_due_age_seconds"), 0);
  EXPECT_EQ(keys("expired"), 1);
  EXPECT_EQ(keys("completed"), 0);
}

TEST_F(Metrics, V31_S22_a_record_that_is_damaged_is_no_answer_and_is_counted) {
  ask(charge("k"));
  EXPECT_EQ(metric("idem_store_errors_total"), 0);
  EXPECT_EQ(gateway_->terminate(), 0);
  spoil_records(dir_.path() / "idem.db");
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  EXPECT_EQ(metric("idem_damaged_records_total"), 0);
  EXPECT_TRUE(is_problem(ask(charge("k")), 503, "record_damaged"));
  EXPECT_TRUE(gateway_->process().wait_for_line("record_damaged"));
  EXPECT_GE(metric("idem_damaged_records_total"), 1);
  EXPECT_EQ(ask(charge("other")).status, 201);
  EXPECT_TRUE(is_problem(ask(charge("k")), 503, "record_damaged")) << "a retry does not run";
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(Metrics, V31_times_are_measured_and_a_lease_is_suggested) {
  EXPECT_EQ(metric("idem_suggested_lease_seconds"), -1) << "nothing to suggest it from";
  ask(charge("k", "slow=30"));
  ask(charge("k"));
  EXPECT_EQ(metric("idem_reserve_seconds_count"), 2);
  EXPECT_EQ(metric("idem_settle_seconds_count"), 1);
  EXPECT_EQ(metric("idem_request_seconds_count"), 2);
  EXPECT_EQ(metric("idem_upstream_seconds_count"), 1);
  EXPECT_EQ(metric("idem_upstream_seconds_bucket{le=\"0.025\"}"), 0);
  EXPECT_EQ(metric("idem_upstream_seconds_bucket{le=\"+Inf\"}"), 1);
  EXPECT_GE(metric("idem_upstream_seconds_sum"), 0.03);
  EXPECT_GE(metric("idem_request_seconds_sum"), metric("idem_upstream_seconds_sum"));
  EXPECT_GE(metric("idem_suggested_lease_seconds"), 2 * 0.03);
}

TEST_F(Metrics, V33_keys_that_look_like_personal_data_are_counted) {
  ask(charge("order-17"));
  EXPECT_EQ(metric("idem_keys_like_personal_data_total"), 0);
  ask(charge("ada@example.org"));
  ask(charge("4111111111111111"));
  EXPECT_EQ(metric("idem_keys_like_personal_data_total"), 2);
}

TEST_F(Metrics, V31_connections_are_counted) {
  Connection one(gateway_->address());
  EXPECT_EQ(one.exchange(charge("k")).status, 201);
  Connection two(gateway_->address());
  EXPECT_EQ(two.exchange(charge("k")).status, 201);
  EXPECT_EQ(metric("idem_open_connections"), 2);
  EXPECT_EQ(metric("idem_refused_connections_total"), 0);
}

class OneConnection : public Metrics {
 protected:
  std::vector<std::string> flags() const override { return {"--connections", "1"}; }
};

TEST_F(OneConnection, V31_refused_connections_are_counted) {
  Connection one(gateway_->address());
  ASSERT_EQ(one.exchange(charge("k")).status, 201);
  Connection two(gateway_->address());
  EXPECT_TRUE(two.closed_by_peer());
  EXPECT_EQ(metric("idem_open_connections"), 1);
  EXPECT_EQ(metric("idem_refused_connections_total"), 1);
}

TEST_F(Metrics, V32_duplicates_are_counted_by_tenant_without_naming_the_tenant) {
  const auto of = [](const char* tenant) {
    return with(without(charge("k"), "X-Tenant-Id"), "X-Tenant-Id", tenant);
  };
  for (const auto* tenant : {"acme", "globex", "globex", "globex"}) ask(of(tenant));
  const auto text = get("/metrics").body;
  EXPECT_EQ(text.find("globex"), std::string::npos);
  std::vector<std::string> lines;
  for (std::size_t at = text.find("\nidem_duplicates_total{"); at != std::string::npos;
       at = text.find("\nidem_duplicates_total{", at + 1)) {
    lines.push_back(text.substr(at + 1, text.find('\n', at + 1) - at - 1));
  }
  ASSERT_EQ(lines.size(), 2U) << "those without duplicates have no series";
  EXPECT_EQ(lines[0], "idem_duplicates_total{tenant=\"other\"} 0");
  EXPECT_TRUE(lines[1].ends_with("\"} 2")) << lines[1];
}

TEST_F(Metrics, V32_tenants_beyond_the_bound_share_one_series) {
  constexpr int count = 70;
  for (int i = 0; i < count; ++i) {
    const auto request =
        with(without(charge("k"), "X-Tenant-Id"), "X-Tenant-Id", fmt::format("tenant-{}", i));
    ask(request);
    ask(request);
  }
  const auto text = get("/metrics").body;
  int series = 0;
  for (std::size_t at = text.find("\nidem_duplicates_total{"); at != std::string::npos;
       at = text.find("\nidem_duplicates_total{", at + 1)) {
    ++series;
  }
  EXPECT_EQ(series, 65);
  EXPECT_EQ(metric("idem_duplicates_total{tenant=\"other\"}"), count - 64);
}

class NamedTenants : public Metrics {
 protected:
  std::vector<std::string> flags() const override { return {"--metrics-tenants", "name"}; }
};

TEST_F(NamedTenants, V32_are_called_by_name_where_the_operator_allows_it) {
  ask(charge("k"));
  ask(charge("k"));
  EXPECT_EQ(metric("idem_duplicates_total{tenant=\"acme\"}"), 1);
}

TEST_F(Metrics, V31_promtool_accepts_them) {
  IDEM_NEED_PROMTOOL(promtool);
  ask(charge("k"));
  ask(charge("k"));
  ask(charge("lost", "drop-after"));
  const auto answer = get("/metrics");
  EXPECT_EQ(answer.get("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  const auto file = dir_.path() / "metrics.txt";
  std::ofstream(file) << answer.body;
  const auto checked = run_program(
      "/bin/sh", {"-c", fmt::format("{} check metrics < {}", promtool.string(), file.string())});
  EXPECT_EQ(checked.exit_code, 0) << checked.output << "\n" << answer.body;
  EXPECT_EQ(checked.output, "");
  for (const auto* dotted : {"api.idempotency.reserve", "api.idempotency.zombie.keys"}) {
    EXPECT_NE(answer.body.find(dotted), std::string::npos);
  }
}

TEST(AlertRules,
     V32_fire_on_a_burst_of_misuse_an_old_unknown_and_store_errors_and_on_nothing_else) {
  IDEM_NEED_PROMTOOL(promtool);
  const auto rules = std::filesystem::path(IDEM_SOURCE_DIR) / "docs";
  const auto checked = run_program(promtool, {"check", "rules", (rules / "alerts.yml").string()});
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  const auto played =
      run_program(promtool, {"test", "rules", (rules / "alerts_test.yml").string()});
  EXPECT_EQ(played.exit_code, 0) << played.output;
  EXPECT_NE(played.output.find("SUCCESS"), std::string::npos);
}

}  // namespace
}  // namespace idem::test
