#include "store_conformance/harness.hpp"

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
  for (const Millis step : {Millis(24h * 3650), Millis(-24h * 3650)}) {
    Host later = host;
    later.wall += step;
    EXPECT_EQ(StoreClock(later.clock(), mark).now(), mark.store + 1h);
  }
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

TEST(StoreClock, S15_this_machine_can_be_read) {
  const HostClock host = this_host();
  EXPECT_FALSE(host.boot_id.empty());
  EXPECT_GT(host.uptime(), Millis(0));
  EXPECT_LE(host.uptime(), host.uptime());
}

}  // namespace
}  // namespace idem::test
