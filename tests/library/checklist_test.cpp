#include "library/phased.hpp"

/// Lines of the verification checklist that ask something of the library and of no part of it in
/// particular.
namespace idem::test {
namespace {

using Checklist = Phases;

INSTANTIATE_TEST_SUITE_P(Stores, Checklist, testing::Values("sqlite", "postgres"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Checklist, V04_the_scope_alone_decides_which_record_is_found_and_no_credential) {
  const auto first = serve(payment("k"), paying());
  auto other_session = payment("k");
  other_session.headers.push_back({"Authorization", "Bearer of another session"});
  EXPECT_TRUE(replays(first, serve(other_session, paying())));
  auto other_tenant = other_session;
  other_tenant.scope = "globex";
  const auto theirs = serve(other_tenant, paying());
  EXPECT_EQ(theirs.status, 201);
  EXPECT_FALSE(field_of(theirs, "Idempotent-Replayed"));
  EXPECT_EQ(payments(), 2);
}

TEST_P(Checklist, V26_only_records_past_their_retention_are_reaped_and_traffic_goes_on_meanwhile) {
  auto rules_of_short = commits_only();
  rules_of_short.retention = 30ms;
  Guard expires(*engine_, rules_of_short);
  constexpr int keys = 40;
  std::atomic<int> refused = 0;
  std::jthread traffic([&] {
    for (int i = 0; i < keys; ++i) {
      if (serve(payment(fmt::format("kept-{}", i)), paying()).status != 201) ++refused;
    }
  });
  for (int i = 0; i < keys; ++i) {
    EXPECT_EQ(expires
                  .serve(payment(fmt::format("short-{}", i)),
                         [&](const Request&, Execution& run) { return run.commit(paying()); })
                  .status,
              201);
  }
  traffic.join();
  wait_by_the_store(50ms);
  const auto reaped = ask_and_wait(engine_->store(), Reap{1000});
  ASSERT_TRUE(reaped);
  EXPECT_EQ(refused, 0);
  for (int i = 0; i < keys; ++i) {
    EXPECT_EQ(field_of(serve(payment(fmt::format("kept-{}", i)), paying()), "Idempotent-Replayed"),
              "true");
    const auto late =
        expires.serve(payment(fmt::format("short-{}", i)),
                      [&](const Request&, Execution& run) { return run.commit(paying()); });
    EXPECT_EQ(code_of(late), "key_expired") << late.body;
  }
  EXPECT_EQ(payments(), 2 * keys);
}

TEST_P(Checklist, V29_an_unknown_ends_only_by_evidence_and_is_listed_until_then) {
  bank_.will({Does::lose_request});
  auto made = phases(Declares::none);
  PhasedGuard guard(*engine_, rules(), made);
  EXPECT_EQ(code_of(guard.serve(payment("k"))), "in_progress");
  EXPECT_EQ(code_of(until_it_ends(guard, "k")), "outcome_unknown");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(code_of(guard.serve(payment("k"))), "outcome_unknown");
    guard.complete_due();
  }
  EXPECT_EQ(bank_.calls(), 1);
  const auto listed = ask_and_wait(engine_->store(), List{.state = State::unknown});
  ASSERT_TRUE(listed && listed->size() == 1);
  Resolve verdict{.id = listed->front().id,
                  .as = Resolve::As::completed,
                  .fence = listed->front().fence(),
                  .response = StoredResponse{201, {}, "found at the bank"},
                  .source = "operator",
                  .evidence = "the bank's list",
                  .reason = "ticket 1",
                  .observed_at = ask_and_wait(engine_->store(), Count{})->now,
                  .grace = 0ms};
  const auto reply = ask_and_wait(engine_->store(), verdict);
  ASSERT_TRUE(reply && reply->verdict == Resolve::Verdict::done);
  const auto answer = guard.serve(payment("k"));
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body, "found at the bank");
  EXPECT_EQ(bank_.calls(), 1);
}

}  // namespace
}  // namespace idem::test
