#include "store_conformance/redis/asking.hpp"

#include <idem/limits.hpp>

#include <mutex>

/// A server that throws away the sets by which records are found.
namespace idem::test {
namespace {

/// Of the bucket "{idem:61}", whose digits are those of 'a'.
Reserve listed_reserve(int number, std::uint64_t generation) {
  Reserve verb = a_reserve(number, number);
  verb.id.bytes.fill(static_cast<std::uint8_t>('0' + number));
  verb.id.bytes[0] = 'a';
  verb.lease = Millis(1);
  verb.retention = std::chrono::hours(24);
  verb.generation = generation;
  return verb;
}

class RedisLists : public testing::Test {
 protected:
  RedisLists() {
    RedisOptions options;
    options.warn = [this](const std::string& warning) {
      const std::lock_guard lock(mutex_);
      if (warning.contains("lost lists")) warnings_.push_back(warning);
    };
    auto opened = open_redis(server_.url(), test_settings(), options);
    EXPECT_TRUE(opened);
    store_ = std::move(*opened);
  }
  ~RedisLists() override { store_.reset(); }

  Reserve one(int number) { return listed_reserve(number, store_->identity().generation); }
  Execute run(int number) {
    const auto outcome = try_ask(*store_, one(number));
    EXPECT_TRUE(outcome && is<Execute>(*outcome));
    return std::get<Execute>(*outcome);
  }
  void accept(int number) {
    const auto outcome = try_ask(*store_, Accept{one(number), "POST / please"});
    EXPECT_TRUE(outcome && is<Pending>(*outcome));
  }

  /// As many sweeps as look at every bucket; the steps that they made.
  std::vector<LifecycleStep> sweep_all() {
    std::vector<LifecycleStep> all;
    for (std::size_t turn = 0; turn < 256 / limits::redis_compared_buckets; ++turn) {
      const auto steps = try_ask(*store_, Sweep{100});
      EXPECT_TRUE(steps);
      if (steps) all.insert(all.end(), steps->begin(), steps->end());
    }
    return all;
  }
  void drop(const std::string& set) { EXPECT_NE(server_.ask("del {idem:61}" + set), "0"); }
  std::vector<std::string> warnings() {
    const std::lock_guard lock(mutex_);
    return std::exchange(warnings_, {});
  }

  RedisServer server_;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Store> store_;
};

TEST_F(RedisLists, T53_pending_requests_are_claimed_again) {
  accept(1);
  accept(2);
  drop("pending");
  const Claim claim{token(9), "dispatcher", std::chrono::hours(1), false};
  const auto none = try_ask(*store_, claim);
  ASSERT_TRUE(none);
  ASSERT_FALSE(*none) << "no list has them";
  sweep_all();
  const auto claimed = try_ask(*store_, claim);
  ASSERT_TRUE(claimed);
  EXPECT_TRUE(*claimed);
  const auto said = warnings();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("{idem:61}: 2 records were put back"), std::string::npos) << said[0];
  sweep_all();
  EXPECT_TRUE(warnings().empty()) << "once";
}

TEST_F(RedisLists, T53_unknown_records_are_listed_again) {
  ASSERT_TRUE(try_ask(*store_, a_mark_unknown(run(1))));
  drop("unknown");
  const List all{.state = State::unknown, .after = {}, .limit = 10};
  ASSERT_TRUE(try_ask(*store_, all)->empty());
  sweep_all();
  const auto listed = try_ask(*store_, all);
  ASSERT_EQ(listed->size(), 1U);
  EXPECT_EQ(listed->at(0).id, one(1).id);
  EXPECT_EQ(warnings().size(), 1U);
}

// A damaged one has no moment: its place in the list is behind all of them.
TEST_F(RedisLists, S12_the_oldest_unknown_record_is_one_that_can_be_read) {
  ASSERT_TRUE(try_ask(*store_, a_mark_unknown(run(1))));
  ASSERT_TRUE(try_ask(*store_, a_mark_unknown(run(2))));
  const auto second = try_ask(*store_, Find{one(2).id});
  ASSERT_TRUE(second && *second);
  server_.ask("zadd {idem:61}unknown xx +inf a111111111111111");
  const auto with_one = try_ask(*store_, Count{});
  ASSERT_TRUE(with_one) << with_one.error().detail;
  EXPECT_EQ(with_one->oldest_unknown, (*second)->changed_at);
  EXPECT_GE(with_one->now, (*second)->changed_at);
  server_.ask("zadd {idem:61}unknown xx +inf a222222222222222");
  const auto with_two = try_ask(*store_, Count{});
  ASSERT_TRUE(with_two) << with_two.error().detail;
  EXPECT_EQ(with_two->oldest_unknown, std::nullopt);
  EXPECT_EQ(with_two->by_state[static_cast<std::size_t>(State::unknown)], 2U);
}

TEST_F(RedisLists, T53_ended_leases_are_swept_again) {
  run(1);
  drop("due:sweep");
  std::vector<LifecycleStep> steps;
  const auto until = MonotonicClock::now() + std::chrono::seconds(30);
  while (steps.empty()) {  // Until the server's clock is a millisecond on.
    ASSERT_LT(MonotonicClock::now(), until);
    steps = sweep_all();
  }
  EXPECT_EQ(steps[0].id, one(1).id);
  EXPECT_EQ(warnings().size(), 1U);
}

TEST_F(RedisLists, T53_ended_records_are_reaped_again) {
  Reserve verb = one(1);
  verb.retention = Millis(1);
  const auto won = try_ask(*store_, verb);
  ASSERT_TRUE(won && is<Execute>(*won));
  ASSERT_TRUE(try_ask(*store_, a_complete(std::get<Execute>(*won))));
  ASSERT_TRUE(try_ask(*store_, a_complete(run(2))));
  drop("due:reap");
  EXPECT_FALSE(try_ask(*store_, one(3))) << "its bucket may have lost a record";
  sweep_all();
  EXPECT_TRUE(try_ask(*store_, one(3))) << "it has all of them";
  std::vector<LifecycleStep> steps;
  const auto until = MonotonicClock::now() + std::chrono::seconds(30);
  while (steps.empty()) {
    ASSERT_LT(MonotonicClock::now(), until);
    steps = *try_ask(*store_, Reap{100});
  }
  EXPECT_EQ(steps[0].id, verb.id);
  const auto said = warnings();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("2 records were put back"), std::string::npos) << said[0];
}

TEST_F(RedisLists, T53_a_list_that_lost_its_records_too_stays_refused_and_is_reported_once) {
  ASSERT_TRUE(try_ask(*store_, a_complete(run(1))));
  ASSERT_TRUE(try_ask(*store_, a_complete(run(2))));
  server_.ask("del {idem:61}due:reap {idem:61}ra" + std::string(15, '1'));
  sweep_all();
  sweep_all();
  const auto said = warnings();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("records themselves are lost (due:sweep 0, due:reap 1"), std::string::npos)
      << said[0];
  const auto again = try_ask(*store_, one(1));
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, StoreError::Code::unavailable) << "it may not run twice";
  const auto kept = try_ask(*store_, one(2));
  EXPECT_TRUE(kept && !is<Execute>(*kept));
}

}  // namespace
}  // namespace idem::test
