#include "store_conformance/transacting.hpp"

#include <barrier>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <thread>

/// Business rows and what an owner does to its record, in one commit (protocol.md §16, §17): what
/// every store that offers it promises.
namespace idem::test {
namespace {

using How = TransactionEnd::How;

/// Notes the notices that it receives; its reader waits for them.
class NotedChanges final : public Watcher {
 public:
  void changed(const RecordId& id) noexcept override {
    const std::lock_guard lock(mutex_);
    notified_.push_back(id);
    changed_.notify_all();
  }
  std::vector<RecordId> awaited() override { return {}; }
  bool is_notified(const RecordId& id) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 10s,
                             [&] { return std::ranges::find(notified_, id) != notified_.end(); });
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    notified_.clear();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RecordId> notified_;
};

class InTransactions : public StoreConformance {
 protected:
  InTransactions() {
    store().watch(watcher_);
    must(payments_table);
  }

  Transactions& transactions() { return *store().transactions(); }
  SqlRows must(const std::string& sql, std::initializer_list<SqlValue> values = {}) {
    auto rows = transactions().run(sql, values);
    if (rows) return std::move(*rows);
    ADD_FAILURE() << sql << ": " << rows.error();
    return {};
  }
  std::int64_t payments() { return rows_in(transactions()); }

  /// Reserves in the same transaction.
  template <class Work>
  InTransaction reserving(Reserve verb, Work work) {
    verb.generation = store().identity().generation;
    return {std::move(verb), {}, {}, std::move(work)};
  }
  /// The outcome for another asker of that key.
  ReserveOutcome asked_again(int key_number, int token_number = 77) {
    return ask(a_reserve(key_number, token_number));
  }

  std::shared_ptr<NotedChanges> watcher_ = std::make_shared<NotedChanges>();
};

TEST_P(InTransactions, S17_T57_rows_and_completion_are_one_commit) {
  const Execute attempt = run(1);
  const auto end = transactions().run(under(attempt, pays("p1")));
  ASSERT_EQ(end.how, How::committed) << end.why;
  EXPECT_EQ(end.reply.verdict, Verdict::done);
  EXPECT_EQ(end.reply.state, State::completed);
  EXPECT_TRUE(end.reply.expires_at.has_value());
  EXPECT_FALSE(end.reserved.has_value());
  EXPECT_EQ(payments(), 1);
  const auto again = asked_again(1);
  ASSERT_TRUE(is<Replay>(again)) << describe(again);
  EXPECT_EQ(std::get<Replay>(again).response, answer(201, "p1"));
  EXPECT_EQ(find(1)->upstream_reference, "ref-p1");
}

TEST_P(InTransactions, S22_a_completion_that_contradicts_an_event_is_reported) {
  const Execute attempt = run(1);
  Resolve event = a_resolve(1, Resolve::As::completed, attempt.attempt.fence, clock.now());
  event.denies = true;
  EXPECT_EQ(ask(event).verdict, Resolve::Verdict::wrong_state);
  const auto end = transactions().run(under(attempt, pays("p1")));
  ASSERT_EQ(end.how, How::committed) << end.why;
  EXPECT_TRUE(end.reply.is_contradicted);
  EXPECT_TRUE(find(1)->is_contested);
  const Execute other = run(2, 2);
  EXPECT_FALSE(transactions().run(under(other, pays("p2"))).reply.is_contradicted);
}

TEST_P(InTransactions, S17_a_large_answer_is_in_the_same_commit) {
  const Execute attempt = run(1);
  const std::string large(300'000, 'x');
  const auto end = transactions().run(
      under(attempt, [&](Transaction& transaction, auto& id, auto& of) -> std::optional<StoreCall> {
        pay(transaction, "p", id, of);
        return Complete{id, of, answer(200, large), ""};
      }));
  ASSERT_EQ(end.how, How::committed) << end.why;
  EXPECT_EQ(std::get<Replay>(asked_again(1)).response.body, large);
}

TEST_P(InTransactions, S17_work_that_wants_nothing_leaves_nothing_and_its_attempt_runs_on) {
  const Execute attempt = run(1);
  const auto end = transactions().run(
      under(attempt, [](Transaction& transaction, auto& id, auto& of) -> std::optional<StoreCall> {
        pay(transaction, "p", id, of);
        return std::nullopt;
      }));
  EXPECT_EQ(end.how, How::rolled_back) << end.why;
  EXPECT_EQ(payments(), 0);
  EXPECT_EQ(state(1), State::in_progress);
  EXPECT_EQ(transactions().run(under(attempt, pays("p"))).how, How::committed);
  EXPECT_EQ(payments(), 1);
}

TEST_P(InTransactions, S17_T57_a_statement_that_fails_dooms_all_of_it) {
  must("INSERT INTO payments (id, amount) VALUES ($1, $2)", {"taken", std::int64_t{1}});
  const Execute attempt = run(1);
  bool failed = false;
  std::string failure;
  const auto end =
      transactions().run(under(attempt, [&](Transaction& transaction, auto& id, auto& of) {
        pay(transaction, "before", id, of);
        EXPECT_FALSE(transaction.failed());
        pay(transaction, "taken", id, of);
        failed = transaction.failed();
        failure = transaction.failure();
        // Not run any more, whatever it is.
        EXPECT_TRUE(transaction.run("SELECT count(*) FROM payments").empty());
        EXPECT_TRUE(transaction.run("no statement at all").empty());
        EXPECT_EQ(transaction.failure(), failure);
        return pay(transaction, "after", id, of);
      }));
  EXPECT_TRUE(failed);
  EXPECT_EQ(end.how, How::rolled_back);
  EXPECT_EQ(end.why, failure);
  EXPECT_EQ(payments(), 1);
  EXPECT_EQ(state(1), State::in_progress);
}

TEST_P(InTransactions, S17_work_can_doom_it_and_the_first_reason_stays) {
  const Execute attempt = run(1);
  const auto end =
      transactions().run(under(attempt, [](Transaction& transaction, auto& id, auto& of) {
        auto step = pay(transaction, "p", id, of);
        transaction.fail("there is no money");
        transaction.fail("and no patience");
        return step;
      }));
  EXPECT_EQ(end.how, How::rolled_back);
  EXPECT_EQ(end.why, "there is no money");
  EXPECT_EQ(payments(), 0);
  EXPECT_EQ(state(1), State::in_progress);
}

TEST_P(InTransactions, S17_an_exception_of_the_work_comes_out_and_nothing_is_there) {
  const Execute attempt = run(1);
  const auto throws = [](Transaction& transaction, auto& id, auto& of) {
    pay(transaction, "p", id, of);
    throw std::runtime_error("out of luck");
    return std::optional<StoreCall>();
  };
  try {
    (void)transactions().run(under(attempt, throws));
    ADD_FAILURE() << "it was swallowed";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "out of luck");
  }
  EXPECT_THROW((void)transactions().run(reserving(a_reserve(2), throws)), std::runtime_error);
  EXPECT_EQ(payments(), 0);
  EXPECT_EQ(state(1), State::in_progress);
  // And nothing of it is in the way of the next.
  EXPECT_EQ(transactions().run(under(attempt, pays("p"))).how, How::committed);
  EXPECT_EQ(transactions().run(reserving(a_reserve(2, 2), pays("q"))).how, How::committed);
  EXPECT_EQ(payments(), 2);
}

TEST_P(InTransactions, S17_V13_a_late_owner_does_no_work_and_leaves_no_row) {
  Reserve verb = a_reserve(1);
  verb.lease_policy = LeasePolicy::rerun;
  const Execute late = run(verb);
  clock.advance(lease);
  verb.token = token(2);
  const Execute current = run(verb);
  bool ran = false;
  const auto end =
      transactions().run(under(late, [&](Transaction& transaction, auto& id, auto& of) {
        ran = true;
        return pay(transaction, "late", id, of);
      }));
  EXPECT_EQ(end.how, How::superseded);
  EXPECT_EQ(payments(), 0);
  EXPECT_FALSE(ran);
  EXPECT_EQ(transactions().run(under(current, pays("current"))).how, How::committed);
  EXPECT_EQ(payments(), 1);
}

TEST_P(InTransactions, S17_an_attempt_that_never_was_does_nothing) {
  const Execute nobodys{key(1), {1, token(9)}, {}};
  EXPECT_EQ(transactions().run(under(nobodys, pays("p"))).how, How::superseded);
  EXPECT_EQ(payments(), 0);
  EXPECT_FALSE(find(1).has_value());
}

TEST_P(InTransactions, S17_T57_an_attempt_completes_once_and_its_rows_are_there_once) {
  const Execute attempt = run(1);
  ASSERT_EQ(transactions().run(under(attempt, pays("first"))).how, How::committed);
  const auto second = transactions().run(under(attempt, pays("second")));
  EXPECT_EQ(second.how, How::superseded);
  EXPECT_EQ(payments(), 1);
  // Also where the completion was another way's.
  const Execute other = run(2);
  ASSERT_EQ(ask(a_complete(other)).verdict, Verdict::done);
  EXPECT_EQ(transactions().run(under(other, pays("third"))).how, How::superseded);
  EXPECT_EQ(payments(), 1);
  EXPECT_EQ(std::get<Replay>(asked_again(1)).response.body, "first");
}

TEST_P(InTransactions, S16_a_phase_commits_its_rows_with_its_recovery_point) {
  Reserve verb = a_reserve(1);
  verb.lease_policy = LeasePolicy::resume;
  const Execute attempt = run(verb);
  const auto phase = [](std::string name) {
    return [name](Transaction& transaction, auto& id, auto& of) -> std::optional<StoreCall> {
      pay(transaction, name, id, of);
      return Advance{id, of, name};
    };
  };
  for (const char* const name : {"charged", "shipped"}) {
    const auto end = transactions().run(under(attempt, phase(name)));
    ASSERT_EQ(end.how, How::committed) << end.why;
    EXPECT_EQ(end.reply.state, State::in_progress);
    EXPECT_EQ(find(1)->recovery_point, name);
  }
  EXPECT_EQ(payments(), 2);
  // One that does not commit leaves the point where it was.
  EXPECT_EQ(transactions().run(under(attempt, phase("charged"))).how, How::rolled_back);
  EXPECT_EQ(find(1)->recovery_point, "shipped");
  // A later owner begins there; the former owner does not come back.
  clock.advance(lease);
  verb.token = token(2);
  const Execute resumed = run(verb);
  EXPECT_EQ(resumed.recovery_point, "shipped");
  EXPECT_EQ(transactions().run(under(attempt, phase("late"))).how, How::superseded);
  EXPECT_EQ(transactions().run(under(resumed, pays("done"))).how, How::committed);
  EXPECT_EQ(payments(), 3);
}

TEST_P(InTransactions, S16_a_phase_does_not_commit_after_its_lease_but_a_completion_may) {
  const Execute attempt = run(1);
  clock.advance(lease);
  const auto phase = transactions().run(
      under(attempt, [](Transaction& transaction, auto& id, auto& of) -> std::optional<StoreCall> {
        pay(transaction, "phase", id, of);
        return Advance{id, of, "phase"};
      }));
  EXPECT_EQ(phase.how, How::superseded);
  EXPECT_EQ(payments(), 0);
  // Nobody took the record; and once it was swept, the owner's own late answer is the best
  // evidence.
  EXPECT_EQ(sweep().size(), 1U);
  EXPECT_EQ(state(1), State::unknown);
  const auto late = transactions().run(under(attempt, pays("late")));
  EXPECT_EQ(late.how, How::committed) << late.why;
  EXPECT_EQ(payments(), 1);
  EXPECT_EQ(state(1), State::completed);
}

TEST_P(InTransactions, S17_reserve_rows_and_completion_can_be_one_commit) {
  const auto end = transactions().run(reserving(a_reserve(1), pays("p1")));
  ASSERT_EQ(end.how, How::committed) << end.why;
  ASSERT_TRUE(end.reserved.has_value());
  EXPECT_TRUE(is<Execute>(*end.reserved));
  EXPECT_EQ(payments(), 1);
  EXPECT_EQ(state(1), State::completed);

  const auto retry = transactions().run(reserving(a_reserve(1, 2), pays("p2")));
  EXPECT_EQ(retry.how, How::not_run) << retry.why;
  ASSERT_TRUE(retry.reserved.has_value() && is<Replay>(*retry.reserved));
  EXPECT_EQ(std::get<Replay>(*retry.reserved).response.body, "p1");

  Reserve other = a_reserve(1, 3);
  other.fingerprints = {body(2)};
  const auto misuse = transactions().run(reserving(other, pays("p3")));
  EXPECT_EQ(misuse.how, How::not_run);
  EXPECT_TRUE(misuse.reserved.has_value() && is<KeyMisuse>(*misuse.reserved));
  EXPECT_EQ(payments(), 1);
}

TEST_P(InTransactions, S17_a_reserve_of_a_running_key_gets_in_progress_and_does_no_work) {
  run(1);
  const auto end = transactions().run(reserving(a_reserve(1, 2), pays("p")));
  EXPECT_EQ(end.how, How::not_run) << end.why;
  EXPECT_TRUE(end.reserved.has_value() && is<InProgress>(*end.reserved));
  EXPECT_EQ(payments(), 0);
}

TEST_P(InTransactions, S17_S12_where_the_work_fails_the_key_runs_again) {
  const auto failing = [](Transaction& transaction, auto& id, auto& of) {
    auto step = pay(transaction, "p", id, of);
    transaction.fail("declined");
    return step;
  };
  EXPECT_EQ(transactions().run(reserving(a_reserve(1), failing)).how, How::rolled_back);
  EXPECT_EQ(payments(), 0);
  const auto left = state(1);
  EXPECT_TRUE(!left || left == State::failed_retryable) << static_cast<int>(*left);
  const auto retry = transactions().run(reserving(a_reserve(1, 2), pays("p")));
  EXPECT_EQ(retry.how, How::committed) << retry.why;
  EXPECT_EQ(payments(), 1);
}

TEST_P(InTransactions, S02_a_reserve_of_another_generation_does_no_work) {
  InTransaction what = reserving(a_reserve(1), pays("p"));
  what.reserve->generation += 1;
  const auto end = transactions().run(std::move(what));
  EXPECT_EQ(end.how, How::unavailable);
  EXPECT_FALSE(end.why.empty());
  EXPECT_EQ(payments(), 0);
  EXPECT_FALSE(find(1).has_value());
}

TEST_P(InTransactions, S05_T01_of_two_at_once_one_does_the_work) {
  for (int round = 1; round <= 20; ++round) {
    std::barrier together(2);
    std::atomic<int> ran{0};
    TransactionEnd ends[2];
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        together.arrive_and_wait();
        ends[i] = transactions().run(
            reserving(a_reserve(round, 1 + i), [&](Transaction& transaction, auto& id, auto& of) {
              ++ran;
              return pay(transaction, "p" + std::to_string(round), id, of);
            }));
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(payments(), round);
    const bool is_first = ends[0].how == How::committed;
    EXPECT_EQ(ends[is_first ? 0 : 1].how, How::committed) << ends[1].why;
    EXPECT_EQ(ends[is_first ? 1 : 0].how, How::not_run) << ends[is_first ? 1 : 0].why;
    EXPECT_EQ(state(round), State::completed);
  }
}

TEST_P(InTransactions, S17_many_threads_with_keys_of_their_own_all_commit) {
  constexpr int threads = 8;
  constexpr int each = 25;
  std::atomic<int> committed{0};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      for (int n = 0; n < each; ++n) {
        const int number = 1 + i * each + n;
        const auto end =
            transactions().run(reserving(a_reserve(number), pays("p" + std::to_string(number))));
        EXPECT_EQ(end.how, How::committed) << end.why;
        if (end.how == How::committed) ++committed;
      }
    });
  }
  for (auto& thread : all) thread.join();
  EXPECT_EQ(committed, threads * each);
  EXPECT_EQ(payments(), threads * each);
}

TEST_P(InTransactions, S17_values_come_back_as_they_went) {
  const bool is_postgres = GetParam().find("postgres") != std::string::npos;
  const bool is_mysql = GetParam().ends_with("mysql:");
  must(std::string("CREATE TABLE kept (n INTEGER, i BIGINT, d DOUBLE PRECISION, t ") +
       (is_mysql      ? "LONGTEXT CHARACTER SET utf8mb4, b LONGBLOB)"
        : is_postgres ? "TEXT, b BYTEA)"
                      : "TEXT, b BLOB)"));
  using std::numeric_limits;
  const SqlRows rows{
      {std::int64_t{0}, numeric_limits<std::int64_t>::min(), 0.1, "", SqlBytes{}},
      {std::int64_t{1}, numeric_limits<std::int64_t>::max(), -1e300,
       "It's \"Grüße\" \\x41 $1; -- 日本", SqlBytes{std::string("\0\xff'\\\n\0", 6)}},
      {std::int64_t{2}, std::monostate(), std::monostate(), std::monostate(), std::monostate()},
      {std::int64_t{3}, std::int64_t{-1}, 12345.678901234567, std::string(100'000, 'x'),
       SqlBytes{std::string(100'000, '\0')}},
  };
  SqlRows within;
  const auto end = transactions().run(
      under(run(1), [&](Transaction& transaction, auto& id, auto& of) -> std::optional<StoreCall> {
        for (const SqlRow& row : rows) {
          EXPECT_TRUE(transaction.run("INSERT INTO kept VALUES ($1, $2, $3, $4, $5)", row).empty());
        }
        within = transaction.run("SELECT n, i, d, t, b FROM kept ORDER BY n");
        return Complete{id, of, answer(), ""};
      }));
  ASSERT_EQ(end.how, How::committed) << end.why;
  EXPECT_TRUE(within == rows);
  EXPECT_TRUE(must("SELECT n, i, d, t, b FROM kept ORDER BY n") == rows);
  const auto one = must("SELECT t FROM kept WHERE n = $1 AND t = $2",
                        {std::int64_t{1}, std::get<std::string>(rows[1][3])});
  EXPECT_EQ(one.size(), 1U);
}

TEST_P(InTransactions, S17_a_statement_alone_reports_its_error) {
  const auto wrong = transactions().run("SELECT missing FROM nowhere");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().find("nowhere"), std::string::npos) << wrong.error();
  EXPECT_EQ(payments(), 0);
}

TEST_P(InTransactions, S07_waiters_are_notified_of_the_commit) {
  const Execute attempt = run(1);
  EXPECT_TRUE(watcher_->is_notified(key(1)));
  watcher_->forget();
  ASSERT_EQ(transactions().run(under(attempt, pays("p1"))).how, How::committed);
  EXPECT_TRUE(watcher_->is_notified(key(1)));
  ASSERT_EQ(transactions().run(reserving(a_reserve(2), pays("p2"))).how, How::committed);
  EXPECT_TRUE(watcher_->is_notified(key(2)));
}

TEST_P(InTransactions, S17_rows_and_answer_outlive_a_restart) {
  ASSERT_EQ(transactions().run(under(run(1), pays("p1"))).how, How::committed);
  reopen();
  EXPECT_EQ(payments(), 1);
  EXPECT_EQ(std::get<Replay>(asked_again(1)).response.body, "p1");
}

INSTANTIATE_TEST_SUITE_P(Stores, InTransactions, stores_with_transactions(), name_of_store);

}  // namespace
}  // namespace idem::test
