#include "store_conformance/faults.hpp"
#include "store_conformance/mysql/asking.hpp"
#include "support/back_off.hpp"

/// The store in MariaDB when its server or the way there fails, and when an application's
/// transaction has its rows.
namespace idem::test {
namespace {

class MysqlFaults : public testing::Test {
 protected:
  std::string kill_sessions() const {
    return "SELECT GROUP_CONCAT('KILL ', id SEPARATOR ';') FROM information_schema.processlist"
           " WHERE db = '" +
           database_.name() + "' AND id <> CONNECTION_ID()";
  }

  TestMysqlDatabase database_;
};

// ---- the way there ----

TEST_F(MysqlFaults, S04_two_duplicates_with_a_lost_commit_reply_are_one_execution) {
  CuttingProxy proxy(address_in(database_.url()));
  const auto store = open_by_url(by_proxy(proxy, database_.url()));
  lose_replies_to_duplicates(*store, proxy, "INSERT INTO idem_slots");
}

TEST_F(MysqlFaults, S04_two_duplicates_whose_reading_was_cut_are_one_execution) {
  CuttingProxy proxy(address_in(database_.url()));
  const auto store = open_by_url(by_proxy(proxy, database_.url()));
  lose_replies_to_duplicates(*store, proxy, "FOR UPDATE SKIP LOCKED");
}

TEST_F(MysqlFaults, S04_a_settling_write_whose_reply_was_lost_is_reported_as_done) {
  CuttingProxy proxy(address_in(database_.url()));
  const auto store = open_by_url(by_proxy(proxy, database_.url()));
  // By itself or by its repeat; either way the first ending stays.
  lose_replies_to_completions(*store, proxy, "ON DUPLICATE KEY UPDATE",
                              {Verdict::done, Verdict::settled});
}

// Its connection ends with it, and with that the transaction.
TEST_F(MysqlFaults, S04_a_settling_write_that_never_arrives_is_repeated) {
  CuttingProxy proxy(address_in(database_.url()));
  const auto store = open_by_url(by_proxy(proxy, database_.url()));
  for (int number = 1; number <= 10; ++number) {
    const Execute attempt = run(*store, number);
    proxy.lose_message("ON DUPLICATE KEY UPDATE");
    const auto reply = try_ask(*store, a_complete(attempt));
    ASSERT_TRUE(reply.has_value()) << reply.error().detail;
    EXPECT_EQ(reply->verdict, Verdict::done);
  }
}

TEST_F(MysqlFaults, S04_a_decision_whose_reply_was_lost_is_in_doubt_and_never_made_twice) {
  CuttingProxy proxy(address_in(database_.url()));
  const auto store = open_by_url(by_proxy(proxy, database_.url()));
  const Execute attempt = run(*store, 1);
  ASSERT_EQ(try_ask(*store, a_mark_unknown(attempt))->verdict, Verdict::done);
  proxy.lose_answer_to("INSERT INTO idem_evidence");
  const auto lost = try_ask(*store, a_resolve(1, Resolve::As::completed, attempt.attempt.fence));
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code, StoreError::Code::in_doubt) << lost.error().detail;
  const auto log = try_ask(*store, ReadEvidence{key(1)});
  ASSERT_TRUE(log.has_value());
  EXPECT_LE(log->size(), 1U);
}

TEST_F(MysqlFaults, V15_terminated_sessions_lose_nothing_and_repeat_nothing) {
  const auto store = open_by_url(database_.url());
  constexpr int keys = 2'000;
  std::latch done(keys);
  std::atomic<int> executed{0};
  std::atomic<int> in_doubt{0};
  MysqlSession session(database_.url());
  for (int i = 0; i < keys; ++i) {
    Reserve verb = a_reserve_in(*store, 1);
    random_bytes(verb.id.bytes);
    random_bytes(verb.token.bytes);
    ask(*store, verb, [&](auto outcome) {
      if (outcome && is<Execute>(*outcome)) ++executed;
      if (!outcome) ++in_doubt;
      done.count_down();
    });
    // A session may have ended by itself meanwhile, and then there is none to kill.
    if (i % 200 == 100) (void)session.try_run(session.run(kill_sessions()));
  }
  done.wait();
  fmt::print("executed={} unavailable_or_in_doubt={}\n", executed.load(), in_doubt.load());
  // None of them had a rival, so every answered reserve runs, and there is a record for each.
  EXPECT_EQ(executed + in_doubt, keys);
  EXPECT_GE(std::stoi(session.run("SELECT COUNT(*) FROM idem_slots")), executed);
}

// ---- the server ----

TEST_F(MysqlFaults, V09_V15_a_server_that_is_killed_keeps_what_it_has_answered) {
  MysqlServer server;
  const auto store = open_by_url(server.url());
  for (int round = 0; round < 3; ++round) {
    std::vector<Execute> running;
    for (int i = 0; i < 20; ++i) running.push_back(run(*store, 1 + round * 20 + i));
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(try_ask(*store, a_complete(running[i]))->verdict, Verdict::done);
    }
    server.crash();
    const auto while_down = try_ask(*store, a_reserve(255));
    ASSERT_FALSE(while_down.has_value());
    EXPECT_NE(while_down.error().code, StoreError::Code::refused) << while_down.error().detail;
    server.start();
    for (int i = 0; i < 20; ++i) {
      for (;;) {  // Until the next attempt to reach it.
        const auto outcome = try_ask(*store, a_reserve(1 + round * 20 + i, 2));
        if (!outcome) {
          ASSERT_NE(outcome.error().code, StoreError::Code::refused) << outcome.error().detail;
          back_off();
          continue;
        }
        EXPECT_TRUE(i < 10 ? is<Replay>(*outcome) : is<InProgress>(*outcome)) << describe(*outcome);
        break;
      }
    }
  }
}

// Longer than the store waits for a reply: nobody knows what became of what it sent.
TEST_F(MysqlFaults, V15_a_server_that_stands_still_is_given_up_and_found_again) {
  MysqlServer server;
  const auto store = open_by_url(server.url());
  const Execute attempt = run(*store, 1);
  server.pause();
  const auto late = try_ask(*store, a_complete(attempt));
  ASSERT_FALSE(late.has_value());
  EXPECT_NE(late.error().code, StoreError::Code::refused) << late.error().detail;
  server.go_on();
  for (;;) {
    const auto reply = try_ask(*store, a_complete(attempt));
    if (!reply) {
      ASSERT_NE(reply.error().code, StoreError::Code::refused) << reply.error().detail;
      back_off();
      continue;
    }
    EXPECT_NE(reply->verdict, Verdict::stale);
    break;
  }
  EXPECT_TRUE(is<Replay>(try_ask(*store, a_reserve(1, 2)).value()));
}

TEST_F(MysqlFaults, V15_a_server_that_becomes_a_replica_is_left_for_the_next_one) {
  const MysqlServer server;
  const auto store = open_by_url(server.url());
  const Execute attempt = run(*store, 1);
  MysqlSession session(server.url());
  session.run("SET GLOBAL read_only = 1");
  const auto refused = try_ask(*store, a_reserve(2));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, StoreError::Code::unavailable) << refused.error().detail;
  EXPECT_EQ(session.run("SELECT COUNT(*) FROM idem_slots"), "1");
  session.run("SET GLOBAL read_only = 0");
  for (;;) {
    const auto reply = try_ask(*store, a_complete(attempt));
    if (!reply) {
      ASSERT_NE(reply.error().code, StoreError::Code::refused) << reply.error().detail;
      back_off();
      continue;
    }
    EXPECT_EQ(reply->verdict, Verdict::done);
    break;
  }
}

TEST_F(MysqlFaults, V15_a_server_that_has_lost_a_confirmed_attempt_is_refused) {
  const auto store = open_by_url(database_.url());
  const Execute attempt = run(*store, 1);
  MysqlSession session(database_.url());
  session.run("DELETE FROM idem_slots");  // As a replica that was promoted too early.
  (void)session.try_run(session.run(kill_sessions()));
  const auto outcome = try_ask(*store, a_reserve(1, 2));
  ASSERT_FALSE(outcome.has_value()) << describe(*outcome);
  EXPECT_NE(outcome.error().detail.find(std::to_string(attempt.attempt.fence)), std::string::npos)
      << outcome.error().detail;
}

TEST_F(MysqlFaults, S02_a_later_server_at_that_place_must_be_the_same_store) {
  const auto store = open_by_url(database_.url());
  run(*store, 1);
  MysqlSession session(database_.url());
  session.run("SET FOREIGN_KEY_CHECKS = 0");
  // Another store in the place of the first one, as a second gateway makes it.
  const std::string tables = session.run(
      "SELECT GROUP_CONCAT(table_name) FROM information_schema.tables WHERE table_schema ="
      " DATABASE()");
  session.run("DROP TABLE " + tables);
  const auto other = open_by_url(database_.url());
  run(*other, 1);
  for (int number = 1; number <= 4; ++number) {
    const auto outcome = try_ask(*store, a_reserve(number, 2));
    ASSERT_FALSE(outcome) << describe(*outcome);
  }
  (void)session.try_run(session.run(kill_sessions()));
  const auto outcome = try_ask(*store, a_reserve(5, 2));
  ASSERT_FALSE(outcome) << describe(*outcome);
  EXPECT_NE(outcome.error().detail.find("another store"), std::string::npos)
      << outcome.error().detail;
  EXPECT_EQ(session.run("SELECT COUNT(*) FROM idem_slots"), "1") << "the other store's own";
}

// ---- an application's transaction ----

TEST_F(MysqlFaults, S17_V13_rows_that_an_application_holds_delay_nobody_else) {
  const auto store = open_by_url(database_.url());
  const Execute held = run(*store, 1);
  // A key that is only being made: its row is not committed.
  MysqlSession other(database_.url());
  other.run("CREATE TEMPORARY TABLE made AS SELECT * FROM idem_slots WHERE id = " +
            literal(held.id) + "; UPDATE made SET id = " + literal(key(3)) +
            "; BEGIN; INSERT INTO idem_slots SELECT * FROM made");
  MysqlSession application(database_.url());
  application.run("BEGIN; UPDATE idem_slots SET contested = 1 WHERE id = " + literal(held.id));
  OtherKeys others(1'000);
  for (int i = 0; i < 1'000; ++i) {
    others.start_one(*store);
    if (i % 250 != 0) continue;
    for (const int number : {1, 3}) {
      const auto duplicate = try_ask(*store, a_reserve(number, 2));
      ASSERT_TRUE(duplicate.has_value()) << duplicate.error().detail;
      EXPECT_TRUE(is<InProgress>(*duplicate)) << describe(*duplicate);
    }
  }
  EXPECT_EQ(others.completed(), 1'000);
  other.run("ROLLBACK");
  EXPECT_TRUE(is<Execute>(*try_ask(*store, a_reserve(3, 2))));
  application.run("ROLLBACK");
  EXPECT_EQ(try_ask(*store, a_complete(held))->verdict, Verdict::done);
}

TEST_F(MysqlFaults, S17_V13_a_request_that_an_application_accepts_delays_no_claim_of_another) {
  const auto store = open_by_url(database_.url());
  for (int number = 1; number <= 2; ++number) {
    Accept accept = an_accept(number);
    accept.as.generation = store->identity().generation;
    ASSERT_TRUE(is<Pending>(*ask_and_wait(*store, accept)));
  }
  MysqlSession application(database_.url());
  application.run("BEGIN; SELECT * FROM idem_waiting WHERE id = " + literal(key(1)) +
                  " FOR UPDATE; SELECT id FROM idem_slots WHERE id = " + literal(key(1)) +
                  " FOR UPDATE");
  const auto claimed = ask_and_wait(*store, Claim{token(50), "dispatcher", lease, true});
  ASSERT_TRUE(claimed && *claimed) << (claimed ? "nothing was due" : claimed.error().detail);
  EXPECT_EQ((*claimed)->id, key(2));
  const auto none = ask_and_wait(*store, Claim{token(51), "dispatcher", lease, true});
  ASSERT_TRUE(none.has_value());
  EXPECT_FALSE(none->has_value());
  application.run("ROLLBACK");
  EXPECT_TRUE(ask_and_wait(*store, Claim{token(51), "dispatcher", lease, true})->has_value());
}

TEST_F(MysqlFaults, V15_a_lock_that_is_not_granted_is_reported_and_nothing_was_done) {
  const auto store = open_by_url(database_.url());
  const Execute attempt = run(*store, 1);
  ASSERT_EQ(try_ask(*store, a_mark_unknown(attempt))->verdict, Verdict::done);
  MysqlSession application(database_.url());
  application.run("BEGIN; SELECT id FROM idem_slots WHERE id = " + literal(attempt.id) +
                  " FOR UPDATE");
  const Resolve verb = a_resolve(1, Resolve::As::completed, attempt.attempt.fence);
  const auto refused = try_ask(*store, verb);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, StoreError::Code::unavailable) << refused.error().detail;
  run(*store, 2);
  application.run("ROLLBACK");
  EXPECT_EQ(try_ask(*store, Find{key(1)}).value()->state, State::unknown);
  EXPECT_EQ(try_ask(*store, verb)->verdict, Resolve::Verdict::done);
}

// Another transaction, of a gateway that stands still or by hand, may have the row that its scope's
// keys are counted under, also one that it has made itself; under REPEATABLE READ it also has the
// gap in which a new scope's row would lie. All calls are sent at once, so most batches have calls
// of all scopes.
TEST_F(MysqlFaults, V13_a_scope_that_an_application_counts_delays_no_other_scope) {
  const auto store = open_by_url(database_.url());
  const auto counted = [&](int number, std::string scope) {
    Reserve reserve = a_reserve_in(*store, number);
    reserve.scope = std::move(scope);
    reserve.quota = Quota{.active_keys = 10};
    return reserve;
  };
  ASSERT_TRUE(is<Execute>(*ask_and_wait(*store, counted(1, "held"))));
  ASSERT_TRUE(is<Execute>(*ask_and_wait(*store, counted(10, "other"))));
  MysqlSession application(database_.url());
  application.run(
      "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; BEGIN;"
      "SELECT * FROM idem_usage WHERE scope = 'held' FOR UPDATE;"
      "INSERT INTO idem_usage VALUES ('made', 0, 0, 0, 0)");
  using Outcome = std::expected<ReserveOutcome, StoreError>;
  std::map<int, std::promise<Outcome>> outcomes;
  const auto send = [&](int number, const Reserve& reserve) {
    ask(*store, reserve, [&outcome = outcomes[number]](Outcome got) { outcome.set_value(got); });
  };
  for (const int number : {2, 3}) send(number, counted(number, "held"));
  send(4, counted(4, "made"));
  send(5, counted(5, "gap"));
  for (const int number : {6, 7}) send(number, counted(number, "other"));
  for (const int number : {8, 9}) send(number, a_reserve_in(*store, number));
  for (const int number : {6, 7, 8, 9}) {
    const Outcome outcome = outcomes[number].get_future().get();
    ASSERT_TRUE(outcome.has_value()) << number << ": " << outcome.error().detail;
    EXPECT_TRUE(is<Execute>(*outcome)) << number << ": " << describe(*outcome);
  }
  EXPECT_EQ(MysqlSession(database_.url()).run("SELECT COUNT(*) FROM idem_slots"), "6");
  application.run("ROLLBACK");
  for (const int number : {2, 3, 4, 5}) {
    const Outcome outcome = outcomes[number].get_future().get();
    ASSERT_TRUE(outcome.has_value()) << number << ": " << outcome.error().detail;
    EXPECT_TRUE(is<Execute>(*outcome)) << number << ": " << describe(*outcome);
  }
}

// Nobody knows whether there is room for one more: it is neither run nor refused as one too many.
TEST_F(MysqlFaults, V13_a_scope_that_an_application_counts_for_long_is_unavailable) {
  const auto store = open_by_url(database_.url());
  Reserve counted = a_reserve_in(*store, 1);
  counted.quota = Quota{.active_keys = 10};
  MysqlSession application(database_.url());
  application.run("BEGIN; INSERT INTO idem_usage VALUES ('tenant-1', 0, 0, 0, 0)");
  const auto refused = ask_and_wait(*store, counted);
  ASSERT_FALSE(refused.has_value()) << describe(*refused);
  EXPECT_EQ(refused.error().code, StoreError::Code::unavailable) << refused.error().detail;
  application.run("ROLLBACK");
  EXPECT_TRUE(is<Execute>(*ask_and_wait(*store, counted)));
}

// The batch has the new record's row and waits for the scope's counts; the application has these,
// and asks for the row. The server ends the transaction with fewer changes, which is the batch.
TEST_F(MysqlFaults, V15_a_batch_that_a_deadlock_rolls_back_is_made_again) {
  const MysqlServer server;
  const auto store = open_by_url(server.url());
  MysqlSession application(server.url());
  application.run(
      "CREATE TABLE changes (number INT PRIMARY KEY) ENGINE=InnoDB;"
      "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; BEGIN;"
      "INSERT INTO idem_usage SELECT 'tenant-1', seq, 0, 0, 0 FROM seq_1_to_32;"
      "INSERT INTO changes SELECT seq FROM seq_1_to_1000");
  Reserve reserve = a_reserve_in(*store, 1);
  reserve.quota = Quota{.stored_bytes = 1'000'000};
  std::promise<std::expected<ReserveOutcome, StoreError>> reply;
  ask(*store, reserve, [&](auto outcome) { reply.set_value(std::move(outcome)); });
  MysqlSession status(server.url());
  const std::string deadlocks =
      "SELECT variable_value FROM information_schema.global_status"
      " WHERE variable_name = 'Innodb_deadlocks'";
  while (status.run(deadlocks) == "0") {
    application.run("SELECT id FROM idem_slots WHERE id = " + literal(key(1)) + " FOR UPDATE");
  }
  EXPECT_EQ(application.run("SELECT COUNT(*) FROM changes"), "1000");
  application.run("ROLLBACK");
  const auto outcome = reply.get_future().get();
  ASSERT_TRUE(outcome.has_value()) << outcome.error().detail;
  EXPECT_TRUE(is<Execute>(*outcome)) << describe(*outcome);
  EXPECT_EQ(status.run("SELECT COUNT(*) FROM idem_slots"), "1");
  EXPECT_EQ(status.run("SELECT SUM(active) FROM idem_usage"), "1");
}

TEST_F(MysqlFaults, S20_the_usage_of_a_scope_without_records_goes_and_no_other) {
  MysqlSession session(database_.url());
  {
    const auto store = open_by_url(database_.url());
    Reserve counted = a_reserve_in(*store, 1);
    counted.quota = Quota{.active_keys = 10};
    ASSERT_TRUE(is<Execute>(*ask_and_wait(*store, counted)));
  }
  // Rows of two sessions that add up to nothing, some that do not, and a rate that is not over.
  session.run(
      "INSERT INTO idem_usage VALUES ('idle', 1, 3, 30, 0), ('idle', 2, -3, -30, 5),"
      " ('uneven', 1, 3, 30, 0), ('uneven', 2, -3, -29, 0),"
      " ('ahead', 1, 0, 0, 9000000000000000000)");
  const auto store = open_by_url(database_.url());
  ASSERT_TRUE(ask_and_wait(*store, Sweep{100}).has_value());
  EXPECT_EQ(session.run("SELECT GROUP_CONCAT(DISTINCT scope ORDER BY scope) FROM idem_usage"),
            "ahead,tenant-1,uneven");
}

TEST_F(MysqlFaults, S05_T01_of_many_reserves_of_one_key_over_two_stores_one_runs) {
  const auto one = open_by_url(database_.url());
  const auto two = open_by_url(database_.url());
  for (int round = 1; round <= 20; ++round) {
    constexpr int duplicates = 100;
    std::latch done(duplicates);
    std::mutex mutex;
    std::vector<Execute> executed;
    for (int i = 0; i < duplicates; ++i) {
      Store& store = i % 2 == 0 ? *one : *two;
      const Reserve verb = a_reserve_in(store, round, 1 + i % 90);  // Some twice, with one token.
      ask(store, verb, [&, asked = verb.token](auto outcome) {
        if (outcome && is<Execute>(*outcome)) {
          const std::lock_guard lock(mutex);
          executed.push_back(std::get<Execute>(*outcome));
          EXPECT_EQ(executed.back().attempt.token, asked);
        }
        done.count_down();
      });
    }
    done.wait();
    ASSERT_FALSE(executed.empty());
    const auto record = try_ask(*one, Find{key(round)}).value();
    ASSERT_TRUE(record.has_value());
    for (const Execute& run : executed) EXPECT_EQ(run.attempt, record->attempt);
  }
}

// ---- damage ----

TEST_F(MysqlFaults, V22_a_changed_column_is_damage_and_never_runs) {
  const auto store = open_by_url(database_.url());
  MysqlSession session(database_.url());
  const std::string columns = session.run(
      "SELECT GROUP_CONCAT(column_name ORDER BY ordinal_position) FROM information_schema.columns"
      " WHERE table_schema = DATABASE() AND table_name = 'idem_slots' AND data_type IN"
      " ('bigint', 'int', 'tinyint', 'smallint') AND column_name <> 'request_sum'");
  std::istringstream names(columns);
  int number = 0;
  for (std::string name; std::getline(names, name, ',');) {
    const Execute attempt = run(*store, ++number);
    ASSERT_EQ(try_ask(*store, a_complete(attempt))->verdict, Verdict::done);
    session.run("UPDATE idem_slots SET " + name + " = COALESCE(" + name +
                ", 0) ^ 1 WHERE id = " + literal(attempt.id));
    const auto retry = try_ask(*store, a_reserve(number, 2));
    ASSERT_FALSE(retry.has_value()) << name << ": " << describe(*retry);
    EXPECT_EQ(retry.error().code, StoreError::Code::damaged) << name;
    EXPECT_EQ(retry.error().record, attempt.id) << name;
    EXPECT_FALSE(try_ask(*store, Find{attempt.id}).has_value()) << name;
  }
  EXPECT_GT(number, 20);
}

TEST_F(MysqlFaults, V22_what_sql_seals_the_store_reads) {
  const auto store = open_by_url(database_.url());
  MysqlSession session(database_.url());
  const Execute attempt = run(*store, 1);
  ASSERT_EQ(try_ask(*store, a_complete(attempt))->verdict, Verdict::done);
  Accept accept = an_accept(2);
  accept.as.generation = store->identity().generation;
  ASSERT_TRUE(is<Pending>(*ask_and_wait(*store, accept)));
  const Execute unknown = run(*store, 3);
  ASSERT_EQ(try_ask(*store, a_mark_unknown(unknown))->verdict, Verdict::done);
  EXPECT_EQ(session.run("SELECT SUM(idem_is_sound(id)) FROM idem_slots"), "3");
  EXPECT_EQ(session.run("SELECT SUM(answer_sum = idem_answer_sum(id, answer_head, answer_body))"
                        " FROM idem_slots"),
            "1");
  EXPECT_EQ(session.run("SELECT SUM(request_sum = idem_request_sum(id, request)) FROM idem_slots"),
            "1");
  session.run("UPDATE idem_slots SET reconcile_attempts = 7 WHERE id = " + literal(key(3)));
  EXPECT_FALSE(try_ask(*store, Find{key(3)}).has_value());
  session.run("CALL idem_seal(" + literal(key(3)) + ")");
  const auto found = try_ask(*store, Find{key(3)});
  ASSERT_TRUE(found.has_value()) << found.error().detail;
  EXPECT_EQ((*found)->reconcile_attempts, 7U);
}

}  // namespace
}  // namespace idem::test
