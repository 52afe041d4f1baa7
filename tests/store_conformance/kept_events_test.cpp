#include "store_conformance/harness.hpp"

/// Events about an attempt while it ran, and the answer that it ends with (protocol.md §22).
namespace idem::test {
namespace {

using As = Resolve::As;
using ResolveVerdict = Resolve::Verdict;

class KeptEvents : public StoreConformance {
 protected:
  /// An attempt of which an event has said this while it ran.
  Execute run_and_say(int number, bool is_done) {
    const Execute first = run(number);
    say(number, first, is_done);
    return first;
  }
  void say(int number, const Execute& attempt, bool is_done) {
    Resolve event = a_resolve(number, As::completed, attempt.attempt.fence, clock.now());
    event.denies = !is_done;
    EXPECT_EQ(ask(event), (Resolve::Reply{ResolveVerdict::wrong_state, State::in_progress}));
  }
  void expect_completed(int number, const OwnerReply& reply, bool is_contradicted) {
    EXPECT_EQ(reply.verdict, Verdict::done);
    EXPECT_EQ(reply.is_contradicted, is_contradicted);
    EXPECT_EQ(state(number), State::completed);
    EXPECT_EQ(find(number)->is_contested, is_contradicted);
    EXPECT_EQ(find(number)->last_error_code, "");
  }
};

TEST_P(KeptEvents, S22_an_owners_answer_is_compared_with_the_kept_events) {
  const auto ends = [&](int number, bool is_done, int status, bool is_contradicted) {
    const Execute attempt = run_and_say(number, is_done);
    expect_completed(number, ask(a_complete(attempt, answer(status, "b"))), is_contradicted);
  };
  ends(1, false, 201, true);
  ends(2, false, 402, false);
  ends(3, true, 201, false);
  ends(4, true, 402, true);
  ends(5, true, 500, true);
  expect_completed(6, ask(a_complete(run(6))), false);
  reopen();
  EXPECT_TRUE(find(1)->is_contested);
  EXPECT_FALSE(find(3)->is_contested);
}

TEST_P(KeptEvents, S22_so_is_a_late_answer_and_evidence_behind_an_unknown_end) {
  const Execute late = run_and_say(1, false);
  ask(a_mark_unknown(late));
  EXPECT_EQ(state(1), State::unknown);
  expect_completed(1, ask(a_complete(late)), true);

  ask(a_mark_unknown(run_and_say(2, false)));
  Resolve found = a_resolve(2, As::completed, find(2)->fence(), clock.now());
  EXPECT_EQ(ask(found), (Resolve::Reply{ResolveVerdict::done, State::completed, true}));
  EXPECT_TRUE(find(2)->is_contested);

  ask(a_mark_unknown(run_and_say(3, true)));
  found = a_resolve(3, As::completed, find(3)->fence(), clock.now());
  EXPECT_EQ(ask(found), (Resolve::Reply{ResolveVerdict::done, State::completed, false}));
  EXPECT_FALSE(find(3)->is_contested) << "it was done, as was said";

  ask(a_mark_unknown(run_and_say(4, true)));
  found = a_resolve(4, As::completed, find(4)->fence(), clock.now());
  found.response = answer(402, "no");
  EXPECT_EQ(ask(found), (Resolve::Reply{ResolveVerdict::done, State::completed, true}));
}

TEST_P(KeptEvents, S22_a_kept_refusal_does_not_hold_a_released_record) {
  ask(a_release(run_and_say(1, false)));
  EXPECT_EQ(state(1), State::failed_retryable);
  EXPECT_EQ(find(1)->last_error_code, "connect_refused");
  const Execute second = run(1, 2);
  expect_completed(1, ask(a_complete(second)), false);
}

// Our timeout answer, which says that the request never ran, is never beside evidence that it ran.
TEST_P(KeptEvents, S22_an_attempt_reported_as_executed_is_not_answered_with_a_timeout) {
  ask(an_accept(1));
  const Execute attempt = claim();
  say(1, attempt, true);
  clock.advance(retention + 1h);
  ask(a_release(attempt));
  EXPECT_EQ(state(1), State::unknown);
  sweep();
  EXPECT_EQ(state(1), State::unknown);
}

INSTANTIATE_TEST_SUITE_P(Stores, KeptEvents, every_store(), name_of_store);

}  // namespace
}  // namespace idem::test
