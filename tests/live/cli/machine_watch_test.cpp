#include <fstream>

#include "support/admin.hpp"
#include "support/moved_clock.hpp"

/// What a gateway says of the machine below it, at its start and in its metrics.
namespace idem::test {
namespace {

class MachineWatchTest : public Live {
 protected:
  void SetUp() override {}
};

TEST_F(MachineWatchTest, R28_a_disk_that_is_nearly_full_has_a_line_at_the_start_and_a_metric) {
  const std::string here = (dir_.path() / "small").string();
  std::filesystem::create_directory(here);
  const std::string command =
      "mount -t tmpfs -o size=64m none " + here + " 2>/dev/null || exit 77; exec " +
      built_program("idem").string() +
      " gateway --listen 127.0.0.1:0 --admin 127.0.0.1:0 --upstream http://127.0.0.1:9"
      " --scope authorization --store sqlite:" +
      here + "/idem.db";
  Process gateway({.program = "/usr/bin/unshare", .arguments = {"-rm", "sh", "-c", command}});
  const auto admin = gateway.wait_for_address("admin");
  if (gateway.ended() && gateway.exit_code() == 77) {
    GTEST_SKIP() << "no file system of one's own can be mounted here";
  }
  ASSERT_FALSE(admin.empty());
  const std::string output = gateway.output();
  const auto said = output.find("warning disk_low of=store folder=" + here + " free_bytes=");
  EXPECT_LT(said, output.find("listening ")) << output;
  const double free = metric_at(admin, R"(idem_disk_free_bytes{of="store"})");
  EXPECT_GT(free, 0);
  EXPECT_LT(free, 64UL << 20U);
  EXPECT_GT(metric_at(admin, R"(idem_disk_free_bytes{of="uploads"})"), 0);
}

TEST_F(MachineWatchTest, R28_a_clock_that_is_not_the_stores_has_a_line_at_the_start_and_a_metric) {
  IDEM_NEED_PROGRAM("idem-crash");
  MovedClock clock;
  GatewayOptions how;
  how.upstream = "127.0.0.1:9";
  how.store_url = "sqlite:" + (dir_.path() / "idem.db").string();
  how.program = "idem-crash";
  how.environment = {clock.environment()};
  Gateway gateway(how);
  ASSERT_TRUE(gateway.running());
  EXPECT_EQ(gateway.process().output().find("clock_off of=store"), std::string::npos);
  EXPECT_NEAR(metric_at(gateway.admin(), "idem_clock_ahead_seconds"), 0, 1.9);
  EXPECT_GE(metric_at(gateway.admin(), "idem_clock_synchronised"), 0);
  clock.step_wall(-3600);
  gateway.restart({clock.environment()});
  ASSERT_TRUE(gateway.running());
  EXPECT_TRUE(gateway.process().wait_for_line("warning clock_off of=store reason="));
  EXPECT_NEAR(metric_at(gateway.admin(), "idem_clock_ahead_seconds"), -3600, 2);
}

}  // namespace
}  // namespace idem::test
