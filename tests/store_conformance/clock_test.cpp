#include "store/internal_sql.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/harness.hpp"
#include "support/temp_dir.hpp"

#include <idem/limits.hpp>

/// protocol.md §15: the embedded store's clock.
namespace idem::test {
namespace {

struct Host {
  Millis wall{1'800'000'000'000};
  Millis uptime{5'000'000};
  std::string boot = "boot-1";
  HostClock clock() {
    return {[this] { return StoreTime(wall); }, [this] { return uptime; }, boot};
  }
};

TEST(StoreClock, S15_runs_by_the_uptime_whatever_the_wall_clock_does) {
  Host host;
  const StoreClock clock(host.clock(), std::nullopt);
  const StoreTime start = clock.now();
  EXPECT_EQ(start, StoreTime(host.wall));
  host.wall += 24h * 3650;
  EXPECT_EQ(clock.now(), start);
  host.wall -= 24h * 7300;
  host.uptime += 7s;
  EXPECT_EQ(clock.now(), start + 7s);
}

TEST(StoreClock, S15_goes_on_within_the_same_boot) {
  Host host;
  const ClockMark mark = StoreClock(host.clock(), std::nullopt).mark();
  host.uptime += 1h;
  for (const Millis step : {Millis(24h * 3650), Millis(-2h)}) {
    Host later = host;
    later.wall += step;
    EXPECT_EQ(StoreClock(later.clock(), mark).now(), mark.store + 1h);
  }
}

// A wrong mark ends at most as much as a wrong wall clock would; nothing sets the clock back.
TEST(StoreClock, S15_within_the_same_boot_it_stays_near_the_wall_clock_and_never_goes_back) {
  Host host;
  ClockMark mark = StoreClock(host.clock(), std::nullopt).mark();
  mark.uptime -= Millis(1h);
  host.uptime += 24h * 365;
  EXPECT_EQ(StoreClock(host.clock(), mark).now(), mark.store + limits::store_clock_jump_max);
  host.wall -= 24h * 400;
  EXPECT_EQ(StoreClock(host.clock(), mark).now(), mark.store);
}

TEST(StoreClock, S15_after_another_boot_never_goes_back) {
  Host host;
  const ClockMark mark = StoreClock(host.clock(), std::nullopt).mark();
  host.boot = "boot-2";
  host.uptime = 3s;
  host.wall += 2h;
  EXPECT_EQ(StoreClock(host.clock(), mark).now(), StoreTime(host.wall));
  host.wall -= 24h * 400;
  EXPECT_EQ(StoreClock(host.clock(), mark).now(), mark.store);
}

TEST(StoreClock, S15_an_uptime_behind_the_mark_is_not_comparable) {
  Host host;
  const ClockMark mark = StoreClock(host.clock(), std::nullopt).mark();
  host.uptime = 1s;
  host.wall += 1h;
  EXPECT_EQ(StoreClock(host.clock(), mark).now(), StoreTime(host.wall));
}

// A machine that came up with a clock years ahead ended every replay and tombstone at once.
TEST(StoreClock, S15_after_another_boot_follows_the_wall_clock_by_a_bounded_step) {
  Host host;
  const ClockMark mark = StoreClock(host.clock(), std::nullopt).mark();
  host.boot = "boot-2";
  host.wall += 24h * 365;
  EXPECT_EQ(StoreClock(host.clock(), mark).now(), mark.store + limits::store_clock_jump_max);
}

TEST(StoreClock, S15_an_unknown_boot_is_never_the_same_one) {
  Host host;
  host.boot.clear();
  const ClockMark mark = StoreClock(host.clock(), std::nullopt).mark();
  host.uptime += 24h * 3650;
  host.wall += 1h;
  EXPECT_EQ(StoreClock(host.clock(), mark).now(), StoreTime(host.wall));
}

TEST(StoreClock, S16_knows_where_it_cannot_measure_the_elapsed_time) {
  Host host;
  const ClockMark mark = StoreClock(host.clock(), std::nullopt).mark();
  host.uptime += 1s;
  host.wall -= 24h * 400;
  const StoreClock in_this_boot(host.clock(), mark);
  EXPECT_FALSE(in_this_boot.was_restarted());
  EXPECT_TRUE(in_this_boot.has_lost_time()) << "the second is not counted";
  host.wall += 24h * 400;
  EXPECT_FALSE(StoreClock(host.clock(), mark).has_lost_time());
  const auto after_another_boot = [&](Millis later) {
    Host other;
    other.boot = "boot-2";
    other.wall += later;
    return StoreClock(other.clock(), mark);
  };
  EXPECT_TRUE(after_another_boot(1min).was_restarted());
  EXPECT_FALSE(after_another_boot(1min).has_lost_time());
  EXPECT_TRUE(after_another_boot(-1min).has_lost_time());
  EXPECT_TRUE(after_another_boot(25h).has_lost_time());
}

// A provider is not asked again about a charge that it may have forgotten by then.
TEST(SqliteRestart, S16_where_time_was_lost_every_window_is_over) {
  const TempDir dir;
  const auto path = (dir.path() / "idem.db").string();
  const auto ages = [&](const std::string& boot, Millis later) {
    Host host;
    host.boot = boot;
    host.wall += later;
    auto store = open_sqlite(path, test_settings(), {.host = host.clock()});
    EXPECT_TRUE(store);
    Transactions& sql = *(*store)->transactions();
    (void)sql.run(
        "CREATE TABLE IF NOT EXISTS made AS SELECT 1");  // So that there is something to commit.
    const auto point = sql.run("SELECT point_at FROM idem_flows");
    const auto first = sql.run("SELECT first_at FROM idem_outbox");
    return std::pair(point && !point->empty() ? std::get<std::int64_t>(point->at(0).at(0)) : -1,
                     first && !first->empty() ? std::get<std::int64_t>(first->at(0).at(0)) : -1);
  };
  {
    Host host;
    auto store = open_sqlite(path, test_settings(), {.host = host.clock()});
    ASSERT_TRUE(store);
    Transactions& sql = *(*store)->transactions();
    const std::string id(32, 'a');
    ASSERT_TRUE(InternalSql::run(sql, InternalStatement::open_flow,
                                 {id, std::string("pay"), SqlBytes{"input"}, std::int64_t{1000}, id,
                                  std::int64_t{0}, std::string("charged"), std::string()}));
    ASSERT_TRUE(InternalSql::run(sql, InternalStatement::put_message,
                                 {id, id, std::string("d"), std::string(), std::string(),
                                  std::string("t"), std::string("p"), std::string("c")}));
    ASSERT_TRUE(InternalSql::run(sql, InternalStatement::claim_messages,
                                 {std::string("d"), std::int64_t{1}, std::int64_t{1000},
                                  std::int64_t{1000}, std::int64_t{0}}));
  }
  EXPECT_GT(ages("boot-1", 0ms).first, 0);
  EXPECT_GT(ages("boot-2", 1min).second, 0);
  const auto lost = ages("boot-3", 48h);
  EXPECT_EQ(lost.first, 0);
  EXPECT_EQ(lost.second, 0);
}

// The store's clock is far ahead of a wall clock that was set back, so the downtime is not counted.
TEST(SqliteRestart, S16_so_is_it_where_the_bound_of_one_boot_cut_time_off) {
  const TempDir dir;
  const auto path = (dir.path() / "idem.db").string();
  Host host;
  const auto first_at = [&] {
    auto store = open_sqlite(path, test_settings(), {.host = host.clock()});
    EXPECT_TRUE(store);
    const auto first = (*store)->transactions()->run("SELECT first_at FROM idem_outbox");
    return first && !first->empty() ? std::get<std::int64_t>(first->at(0).at(0)) : -1;
  };
  {
    auto store = open_sqlite(path, test_settings(), {.host = host.clock()});
    ASSERT_TRUE(store);
    Transactions& sql = *(*store)->transactions();
    const std::string id(32, 'a');
    ASSERT_TRUE(InternalSql::run(sql, InternalStatement::put_message,
                                 {id, id, std::string("d"), std::string(), std::string(),
                                  std::string("t"), std::string("p"), std::string("c")}));
    ASSERT_TRUE(InternalSql::run(sql, InternalStatement::claim_messages,
                                 {std::string("d"), std::int64_t{1}, std::int64_t{1000},
                                  std::int64_t{1000}, std::int64_t{0}}));
  }
  host.uptime += 1h;
  host.wall += 1h;
  EXPECT_GT(first_at(), 0);
  host.uptime += 1h;
  host.wall -= 24h * 3;
  EXPECT_EQ(first_at(), 0);
}

TEST(StoreClock, S15_this_machine_can_be_read) {
  const HostClock host = this_host();
  EXPECT_FALSE(host.boot_id.empty());
  EXPECT_GT(host.uptime(), Millis(0));
  EXPECT_LE(host.uptime(), host.uptime());
}

}  // namespace
}  // namespace idem::test
