#include "library/guarded.hpp"
#include "support/back_off.hpp"
#include "support/process.hpp"

#include <csignal>
#include <cstdlib>

/// A service that dies between any two lines of the golden path: its rows are there if and only if
/// its answer is, and every retry ends.
namespace idem::test {
namespace {

using namespace std::chrono_literals;

std::string setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Rows that did not commit are not there, so another may run it once the lease is over.
GuardOptions rules() {
  return {.operation = "create-payment", .lease = 600ms, .after_crash = LeasePolicy::rerun};
}

Response pay(Guard& guard, const std::string& key, bool in_one, const TransactionWork& work) {
  if (in_one) return guard.serve_in_transaction(payment(key), work);
  return guard.serve(payment(key),
                     [&](const Request&, Execution& run) { return run.commit(work); });
}

/// Started by the test below, with a crash point armed.
TEST(Child, DISABLED_pays_once) {
  auto store = open_as(setting("IDEM_CHILD_KIND"), setting("IDEM_CHILD_STORE"));
  ASSERT_TRUE(store) << store.error();
  Engine engine(std::move(*store));
  Guard guard(engine, rules());
  const std::string key = setting("IDEM_CHILD_KEY");
  (void)pay(guard, key, !setting("IDEM_CHILD_IN_ONE").empty(), [&](Transaction& tx) -> Outcome {
    tx.run("INSERT INTO payments (id, amount) VALUES ($1, 1)", {key});
    return Response{201, {}, "of the dead"};
  });
}

using Killed = Guarded;

INSTANTIATE_TEST_SUITE_P(Stores, Killed, testing::Values("sqlite", "sqlite_own", "postgres"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Killed, V19_S17_rows_are_there_if_and_only_if_the_answer_is) {
  const int rounds = setting("IDEM_CRASH_RUNS").empty() ? 5 : std::stoi(setting("IDEM_CRASH_RUNS"));
  int had_paid = 0;
  int killed = 0;
  for (const std::string point : {"reserve_before_commit", "reserve_after_commit",
                                  "settle_before_commit", "settle_after_commit"}) {
    for (int round = 0; round < 2 * rounds; ++round) {
      const bool in_one = round % 2 == 1;
      const std::string key = fmt::format("{}-{}", point, round);
      const auto before = payments();
      guard_.reset();
      engine_.reset();
      ProcessOptions options{
          .program = std::filesystem::read_symlink("/proc/self/exe"),
          .arguments = {"--gtest_also_run_disabled_tests",
                        "--gtest_filter=Child.DISABLED_pays_once"},
          .environment = {"IDEM_CHILD_STORE=" + url_, "IDEM_CHILD_KIND=" + GetParam(),
                          "IDEM_CRASH_AT=" + point, "IDEM_CHILD_KEY=" + key}};
      if (in_one) options.environment.push_back("IDEM_CHILD_IN_ONE=1");
      Process child(options);
      ASSERT_EQ(child.exit_code(), 128 + SIGKILL) << point;
      ++killed;
      engine_ = std::make_unique<Engine>(open());
      guard_ = std::make_unique<Guard>(*engine_, rules());
      const auto rows = payments() - before;
      const bool is_committed =
          point == "settle_after_commit" || (point == "reserve_after_commit" && in_one);
      EXPECT_EQ(rows, is_committed ? 1 : 0) << point << " " << in_one;
      had_paid += static_cast<int>(rows);
      Response answer = pay(*guard_, key, in_one, paying());
      while (code_of(answer) == "in_progress") {
        back_off();
        answer = pay(*guard_, key, in_one, paying());
      }
      EXPECT_EQ(answer.status, 201) << point << answer.body;
      EXPECT_EQ(answer.body == "of the dead", is_committed);
      EXPECT_TRUE(replays(answer, pay(*guard_, key, in_one, paying())));
      EXPECT_EQ(payments(), before + 1) << point << " " << in_one;
    }
  }
  fmt::print("killed={} had_paid={} paid_twice=0\n", killed, had_paid);
}

}  // namespace
}  // namespace idem::test
