#include "metrics/quota_refusals.hpp"

#include <idem/limits.hpp>

#include <gtest/gtest.h>

#include <string>

/// Which tenants met their quota.
namespace idem::metrics {
namespace {

TEST(QuotaRefusals, count_each_tenant_the_most_refusals_first) {
  QuotaRefusals refusals;
  EXPECT_TRUE(refusals.report().tenants.empty());
  refusals.note("umbrella");
  for (int i = 0; i < 3; ++i) refusals.note("acme");
  const auto report = refusals.report();
  ASSERT_EQ(report.tenants.size(), 2U);
  EXPECT_EQ(report.tenants[0].scope, "acme");
  EXPECT_EQ(report.tenants[0].refused, 3U);
  EXPECT_EQ(report.tenants[1].scope, "umbrella");
  EXPECT_GE(report.tenants[0].last, report.since);
}

TEST(QuotaRefusals, T39_have_a_bound_and_count_the_rest_together) {
  QuotaRefusals refusals;
  const std::size_t all = limits::metric_tenants_max + 5;
  for (std::size_t i = 0; i < all; ++i) refusals.note("tenant-" + std::to_string(i));
  refusals.note("tenant-0");
  const auto report = refusals.report();
  ASSERT_EQ(report.tenants.size(), limits::metric_tenants_max + 1);
  EXPECT_FALSE(report.tenants[0].scope) << "the rest has the most";
  EXPECT_EQ(report.tenants[0].refused, 5U);
  EXPECT_EQ(report.tenants[1].scope, "tenant-0");
  EXPECT_EQ(report.tenants[1].refused, 2U);
}

}  // namespace
}  // namespace idem::metrics
