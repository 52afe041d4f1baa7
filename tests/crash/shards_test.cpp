#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "support/admin.hpp"
#include "support/live.hpp"

/// A start that moves the records of `embedded:` to another number of shards, killed between each
/// two of its steps (see also the conformance tests: power losses and kills at random moments). The
/// provider's ledger is the judge.
namespace idem::test {
namespace {

constexpr int keys = 200;

class ShardsKilled : public testing::Test {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    IDEM_NEED_PROGRAM("idem-crash");
  }

  std::string url() const { return "embedded:" + (dir_.path() / "store").string(); }

  GatewayOptions with(int shards, const std::string& crash_at = {}) const {
    GatewayOptions options{.upstream = provider_.address(),
                           .store_url = url(),
                           .flags = {"--store-shards", std::to_string(shards)}};
    if (crash_at.empty()) return options;
    options.environment = {"IDEM_CRASH_AT=" + crash_at};
    options.program = "idem-crash";
    return options;
  }

  /// The answers to all keys, each by one effect.
  std::map<std::string, std::string> ask_all(Gateway& gateway) {
    std::map<std::string, std::string> answers;
    for (int i = 0; i < keys; ++i) {
      const std::string key = fmt::format("k{}", i);
      const auto answer = send_once(gateway.address(), charge(key));
      EXPECT_EQ(answer.status, 201) << key;
      EXPECT_EQ(provider_.effects(key), 1) << key;
      answers[key] = answer.body;
    }
    return answers;
  }

  Ran check() const { return run_program(built_program("idem"), {"store", "check", url()}); }

  TempDir dir_;
  Provider provider_;
};

TEST_F(ShardsKilled, T16_a_start_that_is_killed_while_it_moves_records_loses_none) {
  std::map<std::string, std::string> answers;
  {
    Gateway first(with(1));
    ASSERT_TRUE(first.running()) << first.process().output();
    answers = ask_all(first);
    first.kill();  // So that the last commits are in the log only.
  }
  int shards = 1;
  for (const std::string point :
       {"shards_moving", "shard_copied", "shard_copied:2", "shards_moved"}) {
    SCOPED_TRACE(point);
    const int next = shards % 4 + 2;
    Gateway killed(with(next, point));
    ASSERT_FALSE(killed.running());
    EXPECT_EQ(killed.process().exit_code(), 128 + SIGKILL);
    const Ran between = check();
    EXPECT_EQ(between.exit_code, 0) << between.output;
    EXPECT_NE(between.output.find(fmt::format("records {}: ", keys)), std::string::npos)
        << between.output;
    EXPECT_NE(between.output.find("move cut off"), std::string::npos) << between.output;
    const Ran copied = run_program(built_program("idem"),
                                   {"store", "backup", url(), (dir_.path() / "copy").string()});
    EXPECT_EQ(copied.exit_code, 5) << copied.output;
    EXPECT_NE(copied.output.find("start it first"), std::string::npos) << copied.output;
    // On to the new number, back to the old one, or to a third.
    shards = point == "shards_moving" ? 0 : point == "shard_copied" ? shards : next - 1;
    {
      Gateway after(with(shards));
      ASSERT_TRUE(after.running()) << after.process().output();
      EXPECT_EQ(ask_all(after), answers);
      EXPECT_EQ(after.terminate(), 0);
    }
    if (shards == 0) shards = next;
    const Ran checked = check();
    EXPECT_EQ(checked.exit_code, 0) << checked.output;
    EXPECT_EQ(checked.output.find("move cut off"), std::string::npos) << checked.output;
  }
}

}  // namespace
}  // namespace idem::test
