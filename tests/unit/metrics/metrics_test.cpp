#include "metrics/registry.hpp"
#include "metrics/text.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace idem::metrics {
namespace {

using namespace std::chrono_literals;

TEST(Metrics, buckets_are_cumulative_and_their_ends_belong_to_them) {
  Histogram histogram;
  for (const Duration took : {Duration(0ns), Duration(500us), Duration(501us), Duration(60s),
                              Duration(61s), Duration(-1ns)}) {
    histogram.observe(took);
  }
  EXPECT_EQ(histogram.in_bucket(0), 3U) << "0, 0.5 ms and a clock that went back";
  EXPECT_EQ(histogram.in_bucket(1), 1U);
  EXPECT_EQ(histogram.in_bucket(bucket_ends.size() - 1), 1U);
  EXPECT_EQ(histogram.in_bucket(bucket_ends.size()), 1U);
  EXPECT_EQ(histogram.sum(), Duration(121s + 1001us));
}

TEST(Metrics, quantiles_are_interpolated_within_their_bucket) {
  HistogramSum histogram;
  EXPECT_FALSE(quantile(histogram, 0.99));
  histogram.buckets[1] = 98;  // 0.5 to 1 ms
  histogram.buckets[9] = 2;   // 0.25 to 0.5 s
  EXPECT_DOUBLE_EQ(*quantile(histogram, 0.49), 0.00075);
  EXPECT_DOUBLE_EQ(*quantile(histogram, 0.99), 0.375);
  histogram.buckets[bucket_ends.size()] = 100;
  EXPECT_DOUBLE_EQ(*quantile(histogram, 0.99), bucket_ends.back());
}

TEST(Metrics, V32_tenants_are_bounded_and_keep_their_place_when_others_come) {
  Tenants tenants(TenantLabel::name, Secret{});
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) tenants.place_of("tenant-" + std::to_string(i));
    });
  }
  threads.clear();
  EXPECT_EQ(tenants.count(), limits::metric_tenants_max + 1);
  std::size_t with_a_place = 0;
  for (int i = 0; i < 200; ++i) {
    const auto name = "tenant-" + std::to_string(i);
    const auto place = tenants.place_of(name);
    if (place == 0) continue;
    ++with_a_place;
    EXPECT_EQ(tenants.label(place), name);
  }
  EXPECT_EQ(with_a_place, limits::metric_tenants_max);
}

TEST(Metrics, V33_a_tenants_digest_is_neither_its_name_nor_the_digest_of_a_credential) {
  Tenants tenants(TenantLabel::digest, Secret{1});
  const auto place = tenants.place_of("acme");
  EXPECT_EQ(tenants.label(place).size(), 12U);
  EXPECT_FALSE(credential_digest(Secret{1}, "acme").starts_with(tenants.label(place)));
  Tenants others(TenantLabel::digest, Secret{2});
  EXPECT_NE(others.label(others.place_of("acme")), tenants.label(place));
  Tenants off(TenantLabel::off, Secret{});
  EXPECT_EQ(off.place_of("acme"), 0U);
}

TEST(Metrics, V32_a_tenant_that_is_called_like_all_the_others_has_a_series_of_its_own) {
  Tenants tenants(TenantLabel::name, Secret{});
  const auto place = tenants.place_of("other");
  EXPECT_NE(place, 0U);
  EXPECT_NE(tenants.label(place), tenants.label(0));
  EXPECT_EQ(tenants.label(tenants.place_of("others")), "others");
}

TEST(Metrics, labels_are_escaped_and_shards_are_summed) {
  Registry registry(TenantLabel::name, Secret{});
  Shard& one = registry.add_shard();
  Shard& two = registry.add_shard();
  one.reserves[0].add();
  two.reserves[0].add(2);
  two.duplicates[registry.tenants().place_of("a\"b\\c\nd")].add();
  const auto text = registry.exposition({.census = Census{}});
  EXPECT_NE(text.find("\nidem_reserve_total{outcome=\"created\"} 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("{tenant=\"a\\\"b\\\\c\\nd\"} 1\n"), std::string::npos) << text;
}

TEST(Metrics, a_store_that_does_not_answer_leaves_its_own_numbers_out) {
  Registry registry(TenantLabel::digest, Secret{});
  registry.add_shard().store_errors.add();
  const auto text = registry.exposition({});
  EXPECT_NE(text.find("\nidem_store_errors_total 1\n"), std::string::npos);
  for (const auto* name : {"idem_keys{", "idem_oldest_unknown"}) {
    EXPECT_EQ(text.find(name), std::string::npos) << name;
  }
}

TEST(Metrics, a_reaper_that_is_stuck_is_seen_by_its_age) {
  Registry registry(TenantLabel::digest, Secret{});
  Shard& shard = registry.add_shard();
  const std::string name = "\nidem_reap_oldest_due_age_seconds ";
  EXPECT_EQ(registry.exposition({}).find(name), std::string::npos) << "another process reaps";
  shard.reap_due_since.set(std::chrono::steady_clock::now() - 1000s);
  const auto age = [&] {
    const auto text = registry.exposition({});
    const auto at = text.find(name);
    return at == text.npos ? -1 : std::stod(text.substr(at + name.size()));
  };
  EXPECT_GE(age(), 1000);
  shard.reap_due_since.set(std::chrono::steady_clock::now() + 1h);
  EXPECT_EQ(age(), 0) << "never less";
}

TEST(Metrics, the_format_is_the_scrapers_choice) {
  EXPECT_EQ(preferred_format(""), Format::prometheus);
  EXPECT_EQ(preferred_format("text/plain, */*"), Format::prometheus);
  EXPECT_EQ(preferred_format("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"),
            Format::open_metrics);
}

TEST(Metrics, open_metrics_has_exemplars_and_the_older_format_has_none) {
  Registry registry(TenantLabel::off, Secret{});
  const auto keep = [&](std::uint8_t span, Duration took, std::chrono::seconds at) {
    TraceContext context{.is_sampled = true};
    context.trace.bytes.fill(0xab);
    context.span.bytes.fill(span);
    auto& shard = registry.add_shard();
    shard.request.observe(took);
    shard.request.keep_exemplar({context, took, std::chrono::system_clock::time_point(at)});
  };
  keep(0x01, 3ms, 100s);
  keep(0x02, 4ms, 99s);  // Older, on another thread.
  keep(0x03, 61s, 7s);
  const auto older = registry.exposition({});
  EXPECT_EQ(older.find("trace_id"), std::string::npos);
  EXPECT_NE(older.find("idem_request_seconds_bucket{le=\"1\"} 2\n"), std::string::npos);
  EXPECT_NE(older.find("# TYPE idem_store_errors_total counter"), std::string::npos);
  const auto text = registry.exposition({}, Format::open_metrics);
  const std::string trace = "trace_id=\"abababababababababababababababab\"";
  EXPECT_NE(text.find("idem_request_seconds_bucket{le=\"0.005\"} 2 # {" + trace +
                      ",span_id=\"0101010101010101\"} 0.003 100.000\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("{le=\"+Inf\"} 3 # {" + trace + ",span_id=\"0303030303030303\"} 61 7.000\n"),
            std::string::npos);
  EXPECT_NE(text.find("idem_request_seconds_bucket{le=\"1.0\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("# TYPE idem_store_errors counter"), std::string::npos);
  EXPECT_NE(text.find("\nidem_store_errors_total 0\n"), std::string::npos);
  EXPECT_NE(text.find("the first tenants seen are \\\"other\\\"."), std::string::npos);
  EXPECT_TRUE(text.ends_with("# EOF\n"));
}

}  // namespace
}  // namespace idem::metrics
