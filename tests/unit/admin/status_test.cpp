#include "admin/status.hpp"

#include <gtest/gtest.h>

#include "support/json.hpp"

namespace idem::admin {
namespace {

using namespace std::chrono_literals;

class ReaperInStatus : public testing::Test {
 protected:
  test::Json page() {
    return test::parse_json(status_page({}, registry_, MonotonicClock::now()))
        .value_or(test::Json{});
  }
  /// The code of the only trouble; empty: none.
  std::string trouble() {
    const test::Json read = page();
    EXPECT_LE(read["troubles"].items.size(), 1u);
    return read["troubles"].items.empty() ? "" : read["troubles"].items.front()["code"].string;
  }

  metrics::Registry registry_{metrics::TenantLabel::name, Secret{}};
  metrics::Shard& shard_ = registry_.add_shard();
};

TEST_F(ReaperInStatus, is_null_where_another_process_reaps) {
  const auto text = status_page({}, registry_, MonotonicClock::now());
  EXPECT_NE(text.find("\"reap_oldest_due_seconds\":null"), std::string::npos) << text;
  EXPECT_EQ(trouble(), "");
}

TEST_F(ReaperInStatus, is_a_trouble_once_it_is_late) {
  shard_.reap_due_since.set(std::chrono::steady_clock::now() - (limits::reap_is_late - 60s));
  EXPECT_GE(page()["reap_oldest_due_seconds"].integer, 60);
  EXPECT_EQ(trouble(), "");
  shard_.reap_due_since.set(std::chrono::steady_clock::now() - (limits::reap_is_late + 1s));
  EXPECT_GE(page()["reap_oldest_due_seconds"].integer, 121);
  EXPECT_EQ(trouble(), "reap_behind");
}

TEST(StatusPage, V31_of_a_dead_store_knows_no_counts) {
  metrics::Registry registry{metrics::TenantLabel::name, Secret{}};
  Status status;
  status.store_error = "the store does not answer: no connection";
  const auto text = status_page(status, registry, MonotonicClock::now());
  const auto page = test::parse_json(text).value_or(test::Json{});
  EXPECT_EQ(page["contested"].kind, test::Json::Kind::null) << text;
  EXPECT_EQ(page["leases_overdue"].kind, test::Json::Kind::null) << text;
  EXPECT_FALSE(page["seen_all"].boolean);
  ASSERT_EQ(page["troubles"].items.size(), 1U) << text;
  EXPECT_EQ(page["troubles"].items[0]["detail"].string, status.store_error) << "not doubled";
}

TEST(StatusPage, V31_a_contested_record_is_a_trouble_and_a_part_is_at_least) {
  metrics::Registry registry{metrics::TenantLabel::name, Secret{}};
  Status status;
  status.records = Status::Records{.contested = 1, .seen_all_completed = false};
  const auto page =
      test::parse_json(status_page(status, registry, MonotonicClock::now())).value_or(test::Json{});
  ASSERT_EQ(page["troubles"].items.size(), 1U);
  EXPECT_TRUE(page["troubles"].items[0]["detail"].string.starts_with("at least 1 record is"));
  EXPECT_FALSE(page["seen_all_completed"].boolean);
}

}  // namespace
}  // namespace idem::admin
