#include "store_conformance/faults.hpp"
#include "store_conformance/postgres/asking.hpp"
#include "store_conformance/transacting.hpp"
#include "support/back_off.hpp"

#include <idem/limits.hpp>
#include <idem/postgres.hpp>

#include <libpq-fe.h>

#include <future>
#include <latch>
#include <stdexcept>
#include <thread>

/// Transactions of services when PostgreSQL, the way there, or the work itself misbehaves.
namespace idem::test {
namespace {

using How = TransactionEnd::How;

class TransactionFaults : public testing::Test {
 protected:
  /// The store at its own URI, with the table of payments.
  std::unique_ptr<Store> open_with_payments(const std::string& uri) {
    auto store = open_by_uri(uri);
    EXPECT_TRUE(store->transactions()->run(payments_table).has_value());
    return store;
  }

  static std::optional<State> state(Store& store, int key_number) {
    const auto record = ask_and_wait(store, Find{key(key_number)});
    if (!record || !*record) return std::nullopt;
    return (*record)->state;
  }
  std::string payments() { return Psql(database_.uri()).run("SELECT count(*) FROM payments"); }

  TestDatabase database_;
};

// As a message ends; "READ COMMITTED" is none.
const std::string commit_message("COMMIT\0", 7);

TEST_F(TransactionFaults, S17_T57_a_commit_whose_reply_was_lost_is_in_doubt_and_the_record_knows) {
  CuttingProxy proxy(socket_of(database_.uri()));
  const auto store = open_with_payments(through(proxy, database_.uri()));
  for (int round = 1; round <= 10; ++round) {
    const Execute attempt = run(*store, round);
    proxy.lose_answer_to(commit_message);
    const auto end = store->transactions()->run(under(attempt, pays("p" + std::to_string(round))));
    EXPECT_EQ(end.how, How::in_doubt) << end.why;
    EXPECT_EQ(proxy.lost(), round);
    const auto reply = ask_and_wait(*store, a_release(attempt));
    ASSERT_TRUE(reply.has_value()) << reply.error().detail;
    EXPECT_EQ(reply->verdict, Verdict::settled);
    EXPECT_EQ(state(*store, round), State::completed);
    EXPECT_EQ(payments(), std::to_string(round));
  }
}

TEST_F(TransactionFaults, S17_T57_a_commit_that_did_not_arrive_is_in_doubt_and_can_be_released) {
  CuttingProxy proxy(socket_of(database_.uri()));
  const auto store = open_with_payments(through(proxy, database_.uri()));
  for (int round = 1; round <= 10; ++round) {
    const Execute attempt = run(*store, round);
    proxy.lose_message(commit_message);
    EXPECT_EQ(store->transactions()->run(under(attempt, pays("p"))).how, How::in_doubt);
    EXPECT_EQ(proxy.lost(), round);
    const auto reply = ask_and_wait(*store, a_release(attempt));
    ASSERT_TRUE(reply.has_value()) << reply.error().detail;
    EXPECT_EQ(reply->verdict, Verdict::done);
    EXPECT_EQ(payments(), "0");
    InTransaction again{a_reserve_in(*store, round, 2), {}, {}, pays("p")};
    ASSERT_EQ(store->transactions()->run(std::move(again)).how, How::committed);
    EXPECT_EQ(Psql(database_.uri()).run("DELETE FROM payments RETURNING id"), "p");
  }
}

// The completion and the COMMIT are one message to the network, and two to the server.
TEST_F(TransactionFaults, S17_T57_a_completion_without_its_commit_is_in_doubt_and_leaves_nothing) {
  CuttingProxy proxy(socket_of(database_.uri()));
  const auto store = open_with_payments(through(proxy, database_.uri()));
  for (int round = 1; round <= 10; ++round) {
    const Execute attempt = run(*store, round);
    proxy.cut_before(commit_message);
    const auto end = store->transactions()->run(under(attempt, pays("p")));
    EXPECT_EQ(end.how, How::in_doubt) << end.why;
    EXPECT_FALSE(end.rows_may_be_committed);
    EXPECT_EQ(proxy.lost(), round);
    // The next asker waits for the server to notice, and gets the record's state.
    const auto reply = ask_and_wait(*store, a_release(attempt));
    ASSERT_TRUE(reply.has_value()) << reply.error().detail;
    EXPECT_EQ(reply->verdict, Verdict::done);
    EXPECT_EQ(payments(), "0");
  }
}

TEST_F(TransactionFaults, S17_reserve_rows_and_completion_lost_together_are_found_by_the_token) {
  CuttingProxy proxy(socket_of(database_.uri()));
  const auto store = open_with_payments(through(proxy, database_.uri()));
  const auto reserving = [&](int number) {
    return InTransaction{a_reserve_in(*store, number), {}, {}, pays(std::to_string(number))};
  };
  proxy.lose_answer_to(commit_message);
  EXPECT_EQ(store->transactions()->run(reserving(1)).how, How::in_doubt);
  EXPECT_EQ(payments(), "1");
  EXPECT_TRUE(is<Replay>(*ask_and_wait(*store, a_reserve_in(*store, 1))));
  proxy.cut_before(commit_message);
  EXPECT_EQ(store->transactions()->run(reserving(2)).how, How::in_doubt);
  EXPECT_TRUE(is<Execute>(*ask_and_wait(*store, a_reserve_in(*store, 2))));
  EXPECT_EQ(payments(), "1");
}

// Nobody else can end an attempt whose work runs; but the work itself can, by SQL.
TEST_F(TransactionFaults, S17_V13_a_completion_that_is_refused_rolls_the_commit_back) {
  const auto store = open_with_payments(database_.uri());
  const auto ends = [&](int number, const char* change) {
    const Execute attempt = run(*store, number);
    return store->transactions()->run(
        under(attempt, [&](Transaction& transaction, auto& id, auto& of) {
          auto step = pay(transaction, "p", id, of);
          transaction.run(std::string("UPDATE idem.slots SET ") + change +
                          " WHERE state = 'in_progress'");
          return step;
        }));
  };
  const auto stale = ends(1, "fence = nextval('idem.fences'), token = gen_random_uuid()");
  EXPECT_EQ(stale.how, How::superseded) << stale.why;
  EXPECT_EQ(stale.reply, (OwnerReply{Verdict::stale, State::in_progress, {}}));
  const auto settled = ends(2,
                            "state = 'completed', completed_at = changed_at,"
                            " expires_at = changed_at + idem.ms(retention), tombstone_until ="
                            " changed_at + idem.ms(retention) + idem.ms(tombstone)");
  EXPECT_EQ(settled.how, How::superseded) << settled.why;
  EXPECT_EQ(settled.reply.verdict, Verdict::settled);
  EXPECT_EQ(settled.reply.state, State::completed);
  EXPECT_EQ(payments(), "0");
  EXPECT_EQ(state(*store, 1), State::in_progress);
  EXPECT_EQ(state(*store, 2), State::in_progress);
}

TEST_F(TransactionFaults, S17_a_connection_lost_before_the_commit_leaves_nothing) {
  CuttingProxy proxy(socket_of(database_.uri()));
  const auto store = open_with_payments(through(proxy, database_.uri()));
  const Execute attempt = run(*store, 1);
  int lost = 0;
  const auto phase = [](Transaction& transaction, auto& id, auto& of) -> std::optional<StoreCall> {
    pay(transaction, "p", id, of);
    return Advance{id, of, "charged"};
  };
  for (const char* const part : {"INSERT INTO payments", "owners_many"}) {
    proxy.lose_answer_to(part);
    const auto end = store->transactions()->run(under(attempt, phase));
    EXPECT_EQ(end.how, How::unavailable) << part << ": " << end.why;
    EXPECT_EQ(proxy.lost(), ++lost);
    EXPECT_EQ(payments(), "0");
  }
  // Before the work ran it is simply begun again.
  for (const char* const part : {"BEGIN", "idem.admit"}) {
    proxy.lose_answer_to(part);
    int ran = 0;
    const auto end = store->transactions()->run(
        under(attempt, [&](Transaction&, auto&, auto& of) -> std::optional<StoreCall> {
          ++ran;
          return Advance{key(1), of, part};
        }));
    EXPECT_EQ(end.how, How::committed) << part << ": " << end.why;
    EXPECT_EQ(proxy.lost(), ++lost);
    EXPECT_EQ(ran, 1);
  }
  EXPECT_EQ(store->transactions()->run(under(attempt, pays("p"))).how, How::committed);
  EXPECT_EQ(payments(), "1");
}

TEST_F(TransactionFaults, S17_a_session_that_is_ended_under_the_work_leaves_nothing) {
  const auto store = open_with_payments(database_.uri());
  const Execute attempt = run(*store, 1);
  const auto end =
      store->transactions()->run(under(attempt, [&](Transaction& transaction, auto& id, auto& of) {
        auto step = pay(transaction, "p", id, of);
        const auto pid = transaction.run("SELECT pg_backend_pid()");
        Psql(database_.uri())
            .run("SELECT pg_terminate_backend(" +
                 std::to_string(std::get<std::int64_t>(pid.front().front())) + ", 10000)");
        EXPECT_TRUE(transaction.run("SELECT 1").empty());
        EXPECT_TRUE(transaction.failed());
        return step;
      }));
  EXPECT_EQ(end.how, How::unavailable) << end.why;
  EXPECT_EQ(payments(), "0");
  EXPECT_EQ(state(*store, 1), State::in_progress);
  EXPECT_EQ(store->transactions()->run(under(attempt, pays("p"))).how, How::committed);
}

TEST_F(TransactionFaults, V15_a_server_that_is_away_is_reported_and_found_again) {
  PostgresServer server;
  const auto store = open_with_payments(server.uri());
  const Execute attempt = run(*store, 1);
  server.stop();
  EXPECT_EQ(store->transactions()->run(under(attempt, pays("p"))).how, How::unavailable);
  EXPECT_FALSE(store->transactions()->run("SELECT 1").has_value());
  server.start();
  for (;;) {
    const auto end = store->transactions()->run(under(attempt, pays("p")));
    if (end.how == How::committed) break;
    ASSERT_EQ(end.how, How::unavailable) << end.why;
    back_off();
  }
  // A session that waited for its next use while the server came back is closed silently.
  server.stop();
  server.start();
  EXPECT_EQ(rows_in(*store->transactions()), 1);
}

TEST_F(TransactionFaults, S02_a_later_server_at_that_place_must_be_the_same_store) {
  const auto store = open_with_payments(database_.uri());
  const Execute attempt = run(*store, 1);
  Psql session(database_.uri());
  session.run("UPDATE idem.identity SET store_id = gen_random_uuid()");
  session.run(
      "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity"
      " WHERE datname = current_database() AND application_name = 'idem'");
  const auto end = store->transactions()->run(under(attempt, pays("p")));
  EXPECT_EQ(end.how, How::unavailable);
  EXPECT_NE(end.why.find("another store"), std::string::npos) << end.why;
  EXPECT_EQ(payments(), "0");
}

TEST_F(TransactionFaults, S17_the_commit_is_not_the_works_to_say) {
  const auto store = open_with_payments(database_.uri());
  const Execute attempt = run(*store, 1);
  for (const char* const statement :
       {"COMMIT", "commit and chain", " ;\n-- now\n/* /* or */ later */ Rollback", "END", "BEGIN",
        "START TRANSACTION", "SAVEPOINT here", "PREPARE TRANSACTION 'x'", "ABORT"}) {
    const auto end = store->transactions()->run(
        under(attempt, [&](Transaction& transaction, auto& id, auto& of) {
          auto step = pay(transaction, "p", id, of);
          transaction.run(statement);
          EXPECT_TRUE(transaction.failed()) << statement;
          return step;
        }));
    EXPECT_EQ(end.how, How::rolled_back) << statement;
    EXPECT_FALSE(store->transactions()->run(statement).has_value());
  }
  EXPECT_EQ(payments(), "0");
  EXPECT_EQ(store->transactions()->run(under(attempt, pays("p"))).how, How::committed);
}

void by_libpq(Transaction& transaction, const char* script) {
  PQclear(PQexec(postgres_connection(transaction), script));
}

TEST_F(TransactionFaults, S17_work_that_ends_its_transaction_behind_our_back_is_found_out) {
  const auto store = open_with_payments(database_.uri());
  int number = 0;
  for (const char* const script : {"COMMIT", "COMMIT; BEGIN", "COMMIT AND CHAIN", "ROLLBACK; BEGIN",
                                   "COMMIT; BEGIN; SELECT 1 / 0"}) {
    for (const bool throws : {false, true}) {
      const Execute attempt = run(*store, ++number);
      const auto work = [&](Transaction& transaction, auto& id, auto& of) {
        auto step = pay(transaction, "p" + std::to_string(number), id, of);
        by_libpq(transaction, script);
        if (throws) throw std::runtime_error("and gone");
        return step;
      };
      if (throws && std::string_view(script) == "ROLLBACK; BEGIN") {
        // Undone is what should be undone.
        EXPECT_THROW((void)store->transactions()->run(under(attempt, work)), std::runtime_error);
        EXPECT_EQ(state(*store, number), State::in_progress);
        continue;
      }
      // This weighs more than the exception.
      const auto end = store->transactions()->run(under(attempt, work));
      EXPECT_EQ(end.how, How::in_doubt) << script;
      EXPECT_TRUE(end.rows_may_be_committed) << script;
      // Its rows may be there, so that nobody may run it again because its owner says so.
      EXPECT_EQ(state(*store, number), State::unknown) << script;
      EXPECT_EQ(ask_and_wait(*store, a_release(attempt))->verdict, Verdict::stale);
      EXPECT_TRUE(is<Unknown>(*ask_and_wait(*store, a_reserve_in(*store, number, 2))));
    }
  }
}

// It was neither run again nor named: its owner's record became unknown, for no reason given.
TEST_F(TransactionFaults, T57_S17_contention_on_the_connection_itself_is_run_again) {
  const auto store = open_with_payments(database_.uri());
  int number = 0;
  for (const bool throws : {false, true}) {
    int runs = 0;
    const Execute attempt = run(*store, ++number);
    const auto end = store->transactions()->run(
        under(attempt, [&](Transaction& transaction, auto& id, auto& of) {
          auto step = pay(transaction, "p" + std::to_string(number), id, of);
          if (++runs == 3) return step;
          by_libpq(transaction,
                   "DO $$ BEGIN RAISE EXCEPTION 'as it were' USING ERRCODE = '40P01'; END $$");
          if (throws) throw std::runtime_error("and gone");
          EXPECT_EQ(transaction.failure(), "as it were (40P01)");
          return step;
        }));
    EXPECT_EQ(end.how, How::committed) << end.why;
    EXPECT_EQ(runs, 3);
  }
  EXPECT_EQ(payments(), "2");
}

TEST_F(TransactionFaults, S17_a_failure_on_the_connection_itself_is_named) {
  const auto store = open_with_payments(database_.uri());
  const Execute attempt = run(*store, 1);
  const auto end =
      store->transactions()->run(under(attempt, [&](Transaction& transaction, auto& id, auto& of) {
        auto step = pay(transaction, "p", id, of);
        by_libpq(transaction, "INSERT INTO payments SELECT * FROM payments");
        return step;
      }));
  EXPECT_EQ(end.how, How::rolled_back);
  EXPECT_EQ(end.sqlstate, "23505");
  EXPECT_NE(end.why.find("duplicate key"), end.why.npos) << end.why;
  EXPECT_EQ(end.why.find("LOCATION"), end.why.npos) << end.why;
  EXPECT_EQ(payments(), "0");
  // The next work has the session as it was.
  EXPECT_EQ(store->transactions()->run(under(attempt, pays("p"))).how, How::committed);
}

TEST_F(TransactionFaults, S17_a_library_may_use_the_connection_within_the_transaction) {
  const auto store = open_with_payments(database_.uri());
  const Execute attempt = run(*store, 1);
  const auto uses = [&](const char* script, bool wants) {
    return under(attempt, [=](Transaction& transaction, auto& id, auto& of) {
      EXPECT_EQ(transaction.native(), postgres_connection(transaction));
      by_libpq(transaction, script);
      return wants ? std::optional<StoreCall>(Complete{id, of, answer(), ""}) : std::nullopt;
    });
  };
  constexpr const char* insert = "INSERT INTO payments VALUES ('p', 1)";
  EXPECT_EQ(store->transactions()->run(uses(insert, false)).how, How::rolled_back);
  EXPECT_EQ(store->transactions()->run(uses("no statement", true)).how, How::rolled_back);
  EXPECT_EQ(state(*store, 1), State::in_progress);
  EXPECT_EQ(payments(), "0");
  EXPECT_EQ(store->transactions()->run(uses(insert, true)).how, How::committed);
  EXPECT_EQ(payments(), "1");
}

TEST_F(TransactionFaults, S17_work_that_fails_at_the_commit_was_rolled_back) {
  const auto store = open_with_payments(database_.uri());
  ASSERT_TRUE(store->transactions()->run(
      "CREATE TABLE items (payment TEXT REFERENCES payments DEFERRABLE INITIALLY DEFERRED)"));
  const Execute attempt = run(*store, 1);
  const auto end = store->transactions()->run(
      under(attempt, [](Transaction& transaction, auto& id, auto& of) -> std::optional<StoreCall> {
        transaction.run("INSERT INTO items VALUES ($1)", {"nowhere"});
        EXPECT_FALSE(transaction.failed());
        return Complete{id, of, answer(), ""};
      }));
  EXPECT_EQ(end.how, How::rolled_back);
  EXPECT_NE(end.why.find("23503"), std::string::npos) << end.why;
  EXPECT_EQ(state(*store, 1), State::in_progress);
}

TEST_F(TransactionFaults, S17_of_two_works_in_a_deadlock_one_leaves_nothing_and_is_run_again) {
  const auto store = open_with_payments(database_.uri());
  ASSERT_TRUE(store->transactions()->run("INSERT INTO payments VALUES ('a', 0), ('b', 0)"));
  std::latch both_hold(2);
  How ends[2];
  std::atomic<int> runs = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    const Execute attempt = run(*store, 1 + i);
    threads.emplace_back([&, i, attempt] {
      bool has_met = false;
      const std::string mine = i == 0 ? "a" : "b";
      const std::string other = i == 0 ? "b" : "a";
      const auto books = [](Transaction& transaction, const std::string& payment) {
        transaction.run("UPDATE payments SET amount = amount + 1 WHERE id = $1", {payment});
      };
      ends[i] = store->transactions()
                    ->run(under(attempt,
                                [&](Transaction& transaction, auto& id,
                                    auto& of) -> std::optional<StoreCall> {
                                  ++runs;
                                  books(transaction, mine);
                                  if (!std::exchange(has_met, true)) both_hold.arrive_and_wait();
                                  books(transaction, other);
                                  return Complete{id, of, answer(), ""};
                                }))
                    .how;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ends[0], How::committed);
  EXPECT_EQ(ends[1], How::committed);
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(Psql(database_.uri()).run("SELECT sum(amount) FROM payments"), "4");
}

TEST_F(TransactionFaults, S17_V13_work_that_takes_long_delays_no_other_key) {
  const auto store = open_with_payments(database_.uri());
  const Execute held = run(*store, 1);
  std::promise<void> runs;
  std::promise<void> go_on;
  TransactionEnd end;
  std::thread slow([&] {
    end = store->transactions()->run(under(held, [&](Transaction& transaction, auto& id, auto& of) {
      auto step = pay(transaction, "slow", id, of);
      runs.set_value();
      go_on.get_future().wait();
      return step;
    }));
  });
  runs.get_future().wait();
  OtherKeys others(1'000);
  for (int i = 0; i < 1'000; ++i) others.start_one(*store);
  EXPECT_EQ(store->transactions()->run(under(run(*store, 3), pays("quick"))).how, How::committed);
  EXPECT_EQ(others.completed(), 1'000);
  const auto duplicate = ask_and_wait(*store, a_reserve_in(*store, 1, 2));
  ASSERT_TRUE(duplicate.has_value()) << duplicate.error().detail;
  EXPECT_TRUE(is<InProgress>(*duplicate)) << describe(*duplicate);
  go_on.set_value();
  slow.join();
  EXPECT_EQ(end.how, How::committed) << end.why;
  EXPECT_EQ(payments(), "2");
}

TEST_F(TransactionFaults, S17_when_all_connections_are_in_use_a_caller_waits_and_then_is_refused) {
  const auto store = open_with_payments(database_.uri());
  constexpr int all = limits::transaction_connections_max;
  std::vector<Execute> attempts;
  for (int i = 0; i <= all; ++i) attempts.push_back(run(*store, 1 + i));
  std::latch taken(all);
  std::promise<void> go_on;
  const std::shared_future<void> may_go(go_on.get_future());
  std::vector<std::thread> threads;
  for (int i = 0; i < all; ++i) {
    threads.emplace_back([&, i] {
      const auto end = store->transactions()->run(under(
          attempts[static_cast<std::size_t>(i)], [&](Transaction& transaction, auto& id, auto& of) {
            auto step = pay(transaction, std::to_string(i), id, of);
            taken.count_down();
            may_go.wait();
            return step;
          }));
      EXPECT_EQ(end.how, How::committed) << end.why;
    });
  }
  taken.wait();
  const auto refused = store->transactions()->run(under(attempts.back(), pays("last")));
  EXPECT_EQ(refused.how, How::unavailable);
  EXPECT_NE(refused.why.find("taken"), std::string::npos) << refused.why;
  go_on.set_value();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store->transactions()->run(under(attempts.back(), pays("last"))).how, How::committed);
  EXPECT_EQ(payments(), std::to_string(all + 1));
}

}  // namespace
}  // namespace idem::test
