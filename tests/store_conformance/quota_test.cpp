#include "store_conformance/harness.hpp"

#include <idem/limits.hpp>

#include <future>

/// Protocol §5, §6: a scope's quota is looked at where a reserve would make a record, and nowhere
/// else.
namespace idem::test {
namespace {

class Quotas : public StoreConformance {
 protected:
  static Reserve within(const Quota& quota, int key_number, int token_number = 1,
                        std::string scope = "acme") {
    Reserve verb = a_reserve(key_number, token_number);
    verb.scope = std::move(scope);
    verb.quota = quota;
    return verb;
  }
  static Accept accept_within(const Quota& quota, int key_number, std::string request) {
    Accept verb = an_accept(key_number, std::move(request));
    verb.as = within(quota, key_number);
    return verb;
  }
  ReserveOutcome reserve(const Quota& quota, int key_number, int token_number = 1) {
    return ask(within(quota, key_number, token_number));
  }
  bool runs(const Quota& quota, int key_number, std::string scope = "acme") {
    return is<Execute>(ask(within(quota, key_number, 1, std::move(scope))));
  }
  /// None: it was let in.
  std::optional<Millis> refused(const Quota& quota, int key_number) {
    const auto outcome = reserve(quota, key_number);
    const auto* const exceeded = std::get_if<QuotaExceeded>(&outcome);
    if (exceeded == nullptr) return std::nullopt;
    EXPECT_FALSE(find(key_number)) << "nothing was written";
    return exceeded->retry_after;
  }
  Execute run_within(const Quota& quota, int key_number) { return run(within(quota, key_number)); }
  /// So many more keys fit, numbered from `first`; each is made.
  int room(const Quota& quota, int first) {
    int made = 0;
    while (made < 100 && runs(quota, first + made)) ++made;
    return made;
  }

  static Quota keys(std::uint64_t number) { return {.active_keys = number}; }
  static Quota bytes(std::uint64_t number) { return {.stored_bytes = number}; }
  static Quota rate(std::chrono::microseconds interval, std::uint32_t at_once) {
    return {.new_key_interval = interval, .new_keys_at_once = at_once};
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, Quotas, every_store(), name_of_store);

TEST_P(Quotas, S05_T39_a_new_key_beyond_the_number_is_refused_and_no_retry_ever_is) {
  const Quota two = keys(2);
  const Execute first = run_within(two, 1);
  ASSERT_TRUE(runs(two, 2));
  const auto wait = refused(two, 3);
  ASSERT_TRUE(wait);
  EXPECT_EQ(*wait, Millis(limits::quota_retry_max)) << "a day for two keys, and at most an hour";

  EXPECT_TRUE(is<InProgress>(reserve(two, 2, 9)));
  EXPECT_TRUE(is<Execute>(reserve(two, 1, 1))) << "with its own token";
  ask(a_complete(first));
  EXPECT_TRUE(is<Replay>(reserve(two, 1, 9)));
  Reserve other = within(two, 1, 9);
  other.fingerprints = {body(2)};
  EXPECT_TRUE(is<KeyMisuse>(ask(other))) << "misuse is decided first";
  EXPECT_TRUE(refused(two, 3)) << "an answer that is kept is a key that is kept";
}

TEST_P(Quotas, S05_a_released_record_runs_again_beyond_the_number) {
  const Quota one = keys(1);
  const Execute first = run_within(one, 1);
  ask(a_release(first));
  EXPECT_TRUE(refused(one, 2));
  const auto again = reserve(one, 1, 2);
  ASSERT_TRUE(is<Execute>(again));
  EXPECT_TRUE(std::get<Execute>(again).again);
}

TEST_P(Quotas, S05_V34_each_scope_has_its_own) {
  const Quota one = keys(1);
  ASSERT_TRUE(runs(one, 1));
  EXPECT_TRUE(refused(one, 2));
  EXPECT_TRUE(runs(one, 3, "umbrella"));
}

TEST_P(Quotas, S05_an_expired_record_makes_room) {
  const Quota one = keys(1);
  ask(a_complete(run_within(one, 1)));
  clock.advance(retention);
  EXPECT_TRUE(refused(one, 2)) << "it is counted until it is reaped";
  ASSERT_EQ(reap().size(), 1U);
  EXPECT_TRUE(runs(one, 2));
  EXPECT_TRUE(refused(one, 3));

  // A dead record makes room for its own key before it is reaped.
  const auto held = find(2);
  ASSERT_TRUE(held);
  ask(a_release({key(2), *held->attempt, {}, false}));
  clock.advance(retention);
  ASSERT_FALSE(find(2));
  EXPECT_TRUE(refused(one, 3));
  EXPECT_TRUE(runs(one, 2));
  EXPECT_TRUE(refused(one, 3));
}

TEST_P(Quotas, S05_bytes_are_those_of_keys_requests_and_larger_answers) {
  const std::uint64_t each = limits::record_charge;
  const Quota ten = bytes(10 * each);
  const Execute small = run_within(ten, 1);
  const Execute large = run_within(ten, 2);
  ask(a_complete(small, answer(201, std::string(200, 's'))));
  ask(a_complete(large, answer(201, std::string(3 * each, 'l'))));
  EXPECT_EQ(room(ten, 10), 4) << "two records, and three KiB and a head that lie apart";

  const auto stored = ask(accept_within(bytes(100 * each), 3, std::string(5 * each, 'q')));
  EXPECT_TRUE(is<Pending>(stored));
  EXPECT_EQ(room(bytes(20 * each), 20), 4);
}

TEST_P(Quotas, S05_a_tombstone_counts_a_quarter) {
  const std::uint64_t each = limits::record_charge;
  const Quota four = bytes(4 * each);
  for (int number = 1; number <= 4; ++number) {
    ask(a_complete(run_within(four, number), answer(201, std::string(200, 's'))));
  }
  EXPECT_TRUE(refused(four, 9));
  clock.advance(retention);
  ASSERT_EQ(reap().size(), 4U);
  EXPECT_EQ(room(four, 10), 3);
  clock.advance(tombstone);
  ASSERT_EQ(reap().size(), 4U);
  EXPECT_EQ(room(four, 20), 1);
}

TEST_P(Quotas, S05_a_record_released_by_an_operator_is_as_large_as_any) {
  const std::uint64_t each = limits::record_charge;
  const Quota four = bytes(4 * each);
  const Execute failed = run_within(four, 1);
  ask(a_complete(failed, answer(500, std::string(2 * each, 'l'))));
  EXPECT_TRUE(refused(four, 9));
  ASSERT_EQ(ask(CacheBust{key(1), failed.attempt.fence, "it never left the queue"}).verdict,
            Resolve::Verdict::done);
  EXPECT_EQ(room(four, 10), 3);
}

TEST_P(Quotas, S05_a_released_record_that_comes_back_counts_its_bytes) {
  const std::uint64_t each = limits::record_charge;
  const Quota four = bytes(4 * each);
  ask(a_release(run_within(four, 1)));
  ask(a_complete(run_within(four, 2), answer(201, std::string(4 * each, 'l'))));
  const auto again = reserve(four, 1, 2);
  ASSERT_TRUE(is<QuotaExceeded>(again)) << "its answer might be as large";
  EXPECT_GE(std::get<QuotaExceeded>(again).retry_after, Millis(limits::quota_retry_min));
  EXPECT_EQ(find(1)->state, State::failed_retryable);
  Reserve other = within(four, 1, 9);
  other.fingerprints = {body(2)};
  EXPECT_TRUE(is<KeyMisuse>(ask(other))) << "misuse is decided first";
  EXPECT_TRUE(is<Replay>(reserve(four, 2, 9)));
  const Quota eight = bytes(8 * each);
  EXPECT_TRUE(is<QuotaExceeded>(ask(accept_within(eight, 1, std::string(4 * each, 'q')))));
  EXPECT_TRUE(is<Pending>(ask(accept_within(eight, 1, std::string(each, 'q')))));
  const Quota many = bytes(20 * each);
  ask(a_release(run_within(many, 3)));
  EXPECT_TRUE(is<Execute>(reserve(many, 3, 2)));
}

TEST_P(Quotas, S05_new_keys_come_at_their_rate_and_some_at_once) {
  const Quota quota = rate(500ms, 3);
  EXPECT_EQ(room(quota, 1), 3);
  const auto wait = refused(quota, 4);
  ASSERT_TRUE(wait);
  EXPECT_EQ(*wait, 500ms);
  clock.advance(499ms);
  EXPECT_EQ(refused(quota, 4), 1ms);
  clock.advance(1ms);
  EXPECT_EQ(room(quota, 4), 1);
  clock.advance(1h);
  EXPECT_EQ(room(quota, 10), 3) << "unused room is not saved up";
  EXPECT_TRUE(is<Execute>(reserve(quota, 10, 1))) << "a retry is no new key";
}

TEST_P(Quotas, S05_an_uncounted_scope_uses_no_room_of_others) {
  ASSERT_TRUE(is<Execute>(ask(a_reserve(1))));
  ASSERT_TRUE(is<Execute>(ask(a_reserve(2))));
  Reserve verb = within(keys(1), 3);
  verb.scope = a_reserve(1).scope;
  EXPECT_TRUE(is<Execute>(ask(verb)));
}

TEST_P(Quotas, S05_a_start_knows_the_records_there_are) {
  const std::uint64_t each = limits::record_charge;
  const Quota quota{.active_keys = 3, .stored_bytes = 100 * each};
  ask(a_complete(run_within(quota, 1), answer(201, std::string(50 * each, 'l'))));
  ASSERT_TRUE(runs(quota, 2));
  reopen();  // Where the store keeps anything.
  EXPECT_TRUE(runs(quota, 3));
  EXPECT_TRUE(refused(quota, 4));
  EXPECT_EQ(room(bytes(60 * each), 10), 6);
}

TEST_P(Quotas, S05_V34_of_many_at_once_as_many_are_let_in_as_there_is_room) {
  const Quota ten = keys(10);
  std::vector<std::future<bool>> asked;
  for (int number = 0; number < 64; ++number) {
    auto let_in = std::make_shared<std::promise<bool>>();
    asked.push_back(let_in->get_future());
    Reserve verb = within(ten, number);
    verb.generation = store().identity().generation;
    store().call(std::move(verb), [let_in](StoreResult result) {
      let_in->set_value(result && is<Execute>(std::get<ReserveOutcome>(*result)));
    });
  }
  int let_in = 0;
  for (auto& one : asked) let_in += one.get() ? 1 : 0;
  EXPECT_EQ(let_in, 10);
  EXPECT_TRUE(refused(ten, 99));
}

TEST_P(Quotas, S05_of_many_at_once_the_rate_lets_in_as_many) {
  const Quota quota = rate(1h, 7);
  std::vector<std::future<bool>> asked;
  for (int number = 0; number < 64; ++number) {
    auto let_in = std::make_shared<std::promise<bool>>();
    asked.push_back(let_in->get_future());
    Reserve verb = within(quota, number, 1, number % 2 == 0 ? "acme" : "umbrella");
    verb.generation = store().identity().generation;
    store().call(std::move(verb), [let_in](StoreResult result) {
      let_in->set_value(result && is<Execute>(std::get<ReserveOutcome>(*result)));
    });
  }
  int let_in = 0;
  for (auto& one : asked) let_in += one.get() ? 1 : 0;
  EXPECT_EQ(let_in, 14) << "seven of each scope";
}

}  // namespace
}  // namespace idem::test
