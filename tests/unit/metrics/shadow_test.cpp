#include "metrics/shadow.hpp"

#include "metrics/registry.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace idem::metrics {
namespace {

ShadowSeen seen_as(Shadowed decision, std::string_view scope = "acme",
                   std::string_view client = "192.0.2.1") {
  return {.decision = decision, .scope = scope, .client = client, .method = "POST", .path = "/pay"};
}

TEST(ShadowTable, S22_counts_by_route_tenant_and_client) {
  Shadow table;
  table.watch({{"pay", true}});
  table.seen("pay", seen_as(Shadowed::first));
  table.ended_unknown("pay", seen_as(Shadowed::first));
  table.seen("pay", seen_as(Shadowed::duplicate, "acme", "192.0.2.2"));
  table.seen("pay", seen_as(Shadowed::race, "globex"));
  table.not_settled("pay");
  const auto report = table.report();
  ASSERT_EQ(report.routes.size(), 1U);
  const auto& pay = report.routes[0];
  EXPECT_TRUE(pay.in_shadow && pay.waits);
  EXPECT_EQ(pay.counts.requests(), 3U);
  EXPECT_EQ(pay.counts.unknown, 1U);
  EXPECT_EQ(pay.not_settled, 1U);
  ASSERT_EQ(pay.tenants.size(), 2U);
  EXPECT_EQ(pay.tenants[0].scope, "acme");
  EXPECT_EQ(pay.tenants[0].counts.requests(), 2U);
  ASSERT_EQ(pay.tenants[0].clients.size(), 2U);
  EXPECT_EQ(pay.tenants[1].counts.of(Shadowed::race), 1U);
  std::vector<std::string_view> kinds;
  for (const auto& one : pay.examples) kinds.push_back(one.kind);
  EXPECT_EQ(kinds, (std::vector<std::string_view>{"duplicates", "races", "unknown"}));
  table.watch({});
  EXPECT_FALSE(table.report("pay").routes.at(0).in_shadow) << "the counts stay";
  EXPECT_TRUE(table.report("other").routes.empty());
}

TEST(ShadowTable, S22_is_bounded_in_every_direction) {
  Shadow table;
  for (std::size_t i = 0; i < limits::shadow_tenants_max + 10; ++i) {
    table.seen("pay", seen_as(Shadowed::misuse, fmt::format("t{}", i)));
  }
  for (std::size_t i = 0; i < limits::shadow_clients_max + 10; ++i) {
    table.seen("pay", seen_as(Shadowed::first, "t0", fmt::format("c{}", i)));
  }
  auto report = table.report("pay");
  const auto& pay = report.routes.at(0);
  EXPECT_EQ(pay.tenants.size(), limits::shadow_tenants_max + 1);
  EXPECT_EQ(pay.tenants.back().scope, "other");
  EXPECT_EQ(pay.tenants.back().counts.requests(), 10U);
  EXPECT_EQ(pay.tenants.front().clients.size(), limits::shadow_clients_max + 1);
  EXPECT_EQ(pay.examples.at(0).newest.size(), limits::shadow_examples_max);
  EXPECT_EQ(pay.examples.at(0).newest.at(0).scope,
            fmt::format("t{}", limits::shadow_tenants_max + 9));
  for (std::size_t i = 0; i < limits::shadow_routes_max + 10; ++i) {
    table.seen(fmt::format("r{}", i), seen_as(Shadowed::first));
  }
  report = table.report();
  EXPECT_EQ(report.routes.size(), limits::shadow_routes_max + 1);
  std::size_t rows = 0;
  std::uint64_t requests = 0;
  for (const auto& route : report.routes) {
    requests += route.counts.requests();
    for (const auto& tenant : route.tenants) rows += 1 + tenant.clients.size();
  }
  EXPECT_EQ(requests, limits::shadow_tenants_max + limits::shadow_clients_max +
                          limits::shadow_routes_max + 30)
      << "every request is counted";
  EXPECT_LE(rows, limits::shadow_rows_max + 2 * report.routes.size());
}

TEST(ShadowTable, S22_has_series_only_where_a_route_is_in_shadow) {
  Registry registry(TenantLabel::off, {});
  registry.add_upstream(false);
  EXPECT_EQ(registry.exposition({}).find("idem_shadow"), std::string::npos);
  registry.shadow().watch({{"pay", false}});
  registry.shadow().seen("pay", seen_as(Shadowed::misuse));
  const auto text = registry.exposition({});
  EXPECT_NE(text.find(R"(idem_shadow_total{route="pay",decision="misuse"} 1)"), std::string::npos);
  EXPECT_NE(text.find(R"(idem_shadow_unknown_total{route="pay"} 0)"), std::string::npos);
}

}  // namespace
}  // namespace idem::metrics
