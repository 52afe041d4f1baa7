// Log lines about a failing dependency: at once, few lines, and the end of it.
#include "core/exchange/outage.hpp"
#include "metrics/registry.hpp"

#include <gtest/gtest.h>

#include <string>

namespace idem {
namespace {

using namespace std::chrono_literals;

MonotonicTime at(Millis time) { return MonotonicTime(Millis(1'000'000) + time); }

TEST(OutageLines,
     the_first_failure_is_logged_at_once_and_then_one_line_an_interval_with_their_number) {
  OutageLines lines(30s);
  const auto first = lines.failed(at(0ms));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->failures, 1U);
  int written = 0;
  std::uint64_t counted = 1;
  for (Millis time = 1ms; time < 120s; time += 1ms) {
    const auto line = lines.failed(at(time));
    if (!line) continue;
    ++written;
    counted += line->failures;
    EXPECT_EQ(line->lasting, time);
  }
  EXPECT_EQ(written, 3);
  EXPECT_EQ(counted, 90'001U) << "the last line was written at 90 s";
  const auto end = lines.succeeded(at(120s));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->failures, 120'000U);
  EXPECT_EQ(end->lasting, 120s);
  EXPECT_FALSE(lines.succeeded(at(121s)));
}

TEST(OutageLines, an_outage_soon_after_a_recovery_has_lines_of_its_own) {
  OutageLines lines(30s);
  EXPECT_TRUE(lines.failed(at(0s)));
  EXPECT_TRUE(lines.succeeded(at(2s)));
  const auto again = lines.failed(at(5s));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->failures, 1U);
  EXPECT_FALSE(lines.failed(at(6s)));
  const auto end = lines.succeeded(at(7s));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->failures, 2U);
}

TEST(OutageLines, a_store_that_comes_and_goes_is_few_lines_an_interval) {
  OutageLines lines(30s);
  int written = 0;
  for (Millis time = 0ms; time < 300s; time += 10ms) {
    if (lines.failed(at(time))) ++written;
    if (lines.succeeded(at(time + 5ms))) ++written;
  }
  EXPECT_EQ(written, 10 * 2 * OutageLines::outages_max);
}

TEST(Availability, not_reached_is_down_at_once_and_one_slow_answer_is_not) {
  metrics::Availability availability;
  EXPECT_FALSE(availability.answered(at(0s)));
  EXPECT_TRUE(availability.failed(at(1s), "timeout", "too slow", false));
  EXPECT_FALSE(availability.seen().is_down);
  for (int i = 1; i < limits::breaker_failures; ++i) {
    EXPECT_FALSE(availability.failed(at(2s), "timeout", "too slow", false));
  }
  EXPECT_TRUE(availability.seen().is_down);
  EXPECT_EQ(availability.seen().failures, static_cast<std::uint64_t>(limits::breaker_failures));
  EXPECT_EQ(availability.seen().last_answer, at(0s));
  EXPECT_TRUE(availability.answered(at(3s)));
  EXPECT_FALSE(availability.seen().is_down);
  (void)availability.failed(at(40s), "connect", "refused", true);
  EXPECT_TRUE(availability.seen().is_down);
  EXPECT_EQ(availability.seen().reason, "connect");
}

TEST(Routes, V32_their_number_is_bounded_and_their_places_stay) {
  metrics::Routes routes;
  const auto first = routes.place_of("create-payment");
  EXPECT_EQ(first, 1U);
  for (int i = 0; i < 200; ++i) (void)routes.place_of("/r" + std::to_string(i));
  EXPECT_EQ(routes.labels().size(), limits::metric_routes_max + 1);
  EXPECT_EQ(routes.place_of("/r199"), 0U);
  EXPECT_EQ(routes.place_of("create-payment"), first);
}

TEST(Statuses, each_has_one_place_and_strange_ones_share_that_of_their_hundred) {
  for (int status = 0; status < 700; ++status) {
    const std::string label = metrics::status_label(metrics::place_of_status(status));
    const bool has_own = label == std::to_string(status);
    const bool is_status = status >= 100 && status < 600;
    EXPECT_TRUE(has_own || label == (is_status ? std::to_string(status / 100) + "xx" : "none"))
        << status << " " << label;
  }
  EXPECT_EQ(metrics::status_label(metrics::place_of_status(503)), "503");
  EXPECT_EQ(metrics::status_label(metrics::place_of_status(599)), "5xx");
}

TEST(Metrics, V31_every_count_has_a_series_of_zero_from_the_start) {
  metrics::Registry registry(metrics::TenantLabel::off, Secret{});
  registry.version("1.2.3");
  registry.add_upstream(true);
  registry.add_provider("bank", std::make_shared<metrics::ProviderCounts>());
  (void)registry.routes().place_of("pay");
  registry.add_shard();
  metrics::Gauges gauges{.census = Census{}, .messages = std::vector<MessageCount>{}};
  gauges.destinations = {"shop"};
  const std::string text = registry.exposition(gauges);
  for (const auto* sample :
       {"idem_upstream_requests_total{result=\"answered\"} 0",
        "idem_upstream_requests_total{result=\"cut\"} 0",
        "idem_upstream_connect_failures_total{reason=\"tls\"} 0", "idem_upstream_up 1",
        "idem_authorize_requests_total{result=\"failed\"} 0", "idem_authorize_up 1",
        "idem_provider_answers_total{provider=\"bank\",result=\"not_there\"} 0",
        "idem_provider_failures_total{provider=\"bank\",reason=\"status\"} 0",
        "idem_provider_up{provider=\"bank\"} 1",
        "idem_answers_total{route=\"pay\",status=\"201\"} 0",
        "idem_answers_total{route=\"other\",status=\"503\"} 0",
        "idem_dead_letters{destination=\"shop\"} 0", "idem_outbox_messages{destination=\"shop\"} 0",
        "idem_worker_turns_total{worker=\"lifecycle\"} 0",
        "idem_worker_turns_total{worker=\"reconciler\"} 0",
        "idem_build_info{version=\"1.2.3\"} 1"}) {
    EXPECT_NE(text.find("\n" + std::string(sample) + "\n"), std::string::npos) << sample;
  }
  EXPECT_NE(text.find("\nidem_provider_last_answer_age_seconds{provider=\"bank\"} "),
            std::string::npos);
}

TEST(Metrics, R28_disk_and_clock_have_series_once_they_were_looked_at) {
  metrics::Registry registry(metrics::TenantLabel::off, Secret{});
  auto& disk = registry.add_disk("store");
  std::string text = registry.exposition({});
  for (const auto* name : {"\nidem_disk_free_bytes{", "\nidem_clock_", "\nidem_loop_stalled"}) {
    EXPECT_EQ(text.find(name), std::string::npos) << name;
  }
  disk.free_bytes = 1'000;
  registry.clock()->was_seen = true;
  registry.clock()->ahead = -2'500;
  text = registry.exposition({.census = {}, .loop_stalled = Millis(6'000)});
  for (const auto* sample : {"idem_disk_free_bytes{of=\"store\"} 1000", "idem_clock_synchronised 0",
                             "idem_clock_ahead_seconds -2.5", "idem_loop_stalled_seconds 6"}) {
    EXPECT_NE(text.find("\n" + std::string(sample) + "\n"), std::string::npos) << sample;
  }
}

TEST(Metrics, V31_a_counter_is_there_also_while_the_store_does_not_answer) {
  metrics::Registry registry(metrics::TenantLabel::off, Secret{});
  const std::string sample = "\nidem_zombie_keys_total ";
  EXPECT_NE(registry.exposition({}).find(sample + "0\n"), std::string::npos);
  EXPECT_NE(registry.exposition({.census = Census{.leases_ended = 7}}).find(sample + "7\n"),
            std::string::npos);
  EXPECT_NE(registry.exposition({}).find(sample + "7\n"), std::string::npos)
      << "it never goes back";
}

}  // namespace
}  // namespace idem
