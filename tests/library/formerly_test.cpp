#include "library/phased.hpp"

/// Operations that have another name by now (protocol.md §2).
namespace idem::test {
namespace {

using Formerly = Phases;

INSTANTIATE_TEST_SUITE_P(Stores, Formerly, testing::Values("sqlite", "postgres"),
                         [](const auto& kind) { return kind.param; });

GuardOptions renamed(std::vector<std::string> formerly) {
  GuardOptions options{.operation = "pay", .after_crash = LeasePolicy::rerun};
  options.formerly = std::move(formerly);
  return options;
}

TEST_P(Formerly, S02_work_done_under_a_former_name_is_replayed_and_not_done_again) {
  const auto first = serve(payment("k"), paying());
  Guard pays(*engine_, renamed({"old", "create-payment"}));
  const auto committing = [&](const Request&, Execution& run) { return run.commit(paying()); };
  EXPECT_TRUE(replays(first, pays.serve(payment("k"), committing)));
  EXPECT_TRUE(replays(first, pays.serve_in_transaction(payment("k"), paying())));
  EXPECT_EQ(code_of(pays.serve(payment("k", 6), committing)), "key_reused");
  EXPECT_EQ(pays.serve(payment("k2"), committing).status, 201);
  EXPECT_EQ(payments(), 2);
  // A new record has the new name alone.
  Guard only_new(*engine_, renamed({}));
  EXPECT_EQ(field_of(only_new.serve(payment("k2"), committing), "Idempotent-Replayed"), "true");
  EXPECT_FALSE(field_of(serve(payment("k2"), paying()), "Idempotent-Replayed"));
}

TEST_P(Formerly, S02_requests_that_were_their_own_operation_are_found_by_method_and_path) {
  Guard unnamed(*engine_, {.after_crash = LeasePolicy::rerun});
  const auto committing = [&](const Request&, Execution& run) { return run.commit(paying()); };
  const auto first = unnamed.serve(payment("k"), committing);
  Guard pays(*engine_, renamed({"POST /{what}"}));
  EXPECT_TRUE(replays(first, pays.serve(payment("k"), committing)));
  EXPECT_EQ(payments(), 1);
}

TEST_P(Formerly, S16_work_that_was_begun_under_a_former_name_is_completed) {
  fails_to_finish_ = 1;
  {
    PhasedGuard before(*engine_, rules(), phases());
    EXPECT_EQ(code_of(before.serve(payment("k"))), "in_progress");
  }
  auto options = rules();
  options.guard.operation = "pay";
  options.guard.formerly = {"charge"};
  PhasedGuard after(*engine_, options, phases());
  while (flows() > 0) after.complete_due();
  EXPECT_EQ(bank_.charges(), 1);
  const auto answer = after.serve(payment("k"));
  EXPECT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(field_of(answer, "Idempotent-Replayed"), "true");
}

}  // namespace
}  // namespace idem::test
