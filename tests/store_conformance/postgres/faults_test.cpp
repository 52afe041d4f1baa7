#include "store_conformance/faults.hpp"
#include "store_conformance/postgres/asking.hpp"
#include "support/back_off.hpp"

#include <fmt/format.h>

#include <latch>

/// The shared store when its server or the way there fails, and when an application's transaction
/// blocks it.
namespace idem::test {
namespace {

class PostgresFaults : public testing::Test {
 protected:
  static std::string handle(const RecordId& id) { return "'" + to_hex(id.bytes) + "'"; }
  static std::string args(const Execute& run) {
    return fmt::format("{}, {}, '{}'", handle(run.id), run.attempt.fence,
                       to_hex(run.attempt.token.bytes));
  }

  TestDatabase database_;
};

TEST_F(PostgresFaults, S04_two_duplicates_with_a_lost_commit_reply_are_one_execution) {
  CuttingProxy proxy(socket_of(database_.uri()));
  const auto store = open_by_uri(through(proxy, database_.uri()));
  lose_replies_to_duplicates(*store, proxy, "idem.reserve_many");
}

TEST_F(PostgresFaults, S05_T01_of_many_reserves_of_one_key_in_one_batch_one_runs) {
  const auto store = open_by_uri(database_.uri());
  for (int round = 1; round <= 20; ++round) {
    constexpr int duplicates = 100;
    std::latch done(duplicates);
    std::mutex mutex;
    std::vector<Execute> executed;
    for (int i = 0; i < duplicates; ++i) {
      const Reserve verb = a_reserve_in(*store, round, 1 + i % 90);  // Some twice, with one token.
      ask(*store, verb, [&, asked = verb.token](auto outcome) {
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
    const auto record = try_ask(*store, Find{key(round)}).value();
    ASSERT_TRUE(record.has_value());
    for (const Execute& run : executed) EXPECT_EQ(run.attempt, record->attempt);
  }
}

TEST_F(PostgresFaults, S04_a_settling_write_whose_reply_was_lost_is_reported_as_done) {
  CuttingProxy proxy(socket_of(database_.uri()));
  const auto store = open_by_uri(through(proxy, database_.uri()));
  // By itself or by its repeat; either way the first ending stays.
  lose_replies_to_completions(*store, proxy, "idem.owners_many", {Verdict::done, Verdict::settled});
}

TEST_F(PostgresFaults, S17_V13_rows_that_an_application_holds_delay_nobody_else) {
  const auto store = open_by_uri(database_.uri());
  const Execute held = run(*store, 1);
  Psql application(database_.uri());
  application.run("BEGIN");
  application.run("SELECT idem.complete(" + args(held) + ", 201, '[]', 'done by the service')");
  // A key that is only being made, in a transaction of its own.
  Psql other(database_.uri());
  other.run("BEGIN");
  const std::string made =
      other.run("SELECT (idem.reserve('tenant-1', 'pay', 'fresh', 'what is asked')).operation");

  OtherKeys others(1'000);
  for (int i = 0; i < 1'000; ++i) {
    others.start_one(*store);
    if (i % 100 == 0) {
      // Duplicates of the held ones, in the same batches: their keys are in progress.
      const auto duplicate = try_ask(*store, a_reserve(1, 2));
      ASSERT_TRUE(duplicate.has_value()) << duplicate.error().detail;
      EXPECT_TRUE(is<InProgress>(*duplicate)) << describe(*duplicate);
      Reserve fresh = a_reserve(3, 2);
      std::string hex;
      std::ranges::copy_if(made, std::back_inserter(hex), [](char c) { return c != '-'; });
      for (std::size_t byte = 0; byte < fresh.id.bytes.size(); ++byte) {
        fresh.id.bytes[byte] =
            static_cast<std::uint8_t>(std::stoul(hex.substr(2 * byte, 2), nullptr, 16));
      }
      const auto being_made = try_ask(*store, fresh);
      ASSERT_TRUE(being_made.has_value()) << being_made.error().detail;
      EXPECT_TRUE(is<InProgress>(*being_made)) << describe(*being_made);
    }
  }
  EXPECT_EQ(others.completed(), 1'000);

  application.run("COMMIT");
  const auto replayed = try_ask(*store, a_reserve(1, 2));
  ASSERT_TRUE(replayed.has_value());
  ASSERT_TRUE(is<Replay>(*replayed)) << describe(*replayed);
  EXPECT_EQ(std::get<Replay>(*replayed).response.body, "done by the service");
  other.run("ROLLBACK");
}

TEST_F(PostgresFaults, S17_an_owner_whose_record_the_service_holds_gets_the_committed_answer) {
  const auto store = open_by_uri(database_.uri());
  const Execute held = run(*store, 1);
  Psql application(database_.uri());
  application.run("BEGIN");
  application.run("SELECT idem.complete(" + args(held) + ", 201, '[]', 'the service')");
  std::promise<std::expected<OwnerReply, StoreError>> settled;
  ask(*store, a_complete(held, answer(201, "the gateway")),
      [&](auto reply) { settled.set_value(std::move(reply)); });
  application.run("COMMIT");
  const auto reply = settled.get_future().get();
  ASSERT_TRUE(reply.has_value()) << reply.error().detail;
  EXPECT_EQ(reply->verdict, Verdict::settled);
  EXPECT_EQ(try_ask(*store, Find{key(1)}).value()->response->body, "the service");
}

TEST_F(PostgresFaults, V15_terminated_sessions_lose_nothing_and_repeat_nothing) {
  const auto store = open_by_uri(database_.uri());
  constexpr int keys = 2'000;
  std::latch done(keys);
  std::atomic<int> executed{0};
  std::atomic<int> in_doubt{0};
  for (int i = 0; i < keys; ++i) {
    Reserve verb = a_reserve_in(*store, 1);
    random_bytes(verb.id.bytes);
    random_bytes(verb.token.bytes);
    ask(*store, verb, [&](auto outcome) {
      if (outcome && is<Execute>(*outcome)) ++executed;
      if (!outcome) ++in_doubt;
      done.count_down();
    });
    if (i % 200 == 100) {
      Psql(database_.uri())
          .run(
              "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
              " WHERE datname = current_database() AND pid <> pg_backend_pid()");
    }
  }
  done.wait();
  fmt::print("executed={} unavailable_or_in_doubt={}\n", executed.load(), in_doubt.load());
  // None of them had a rival, so every answered reserve runs, and there is a record for each.
  EXPECT_EQ(executed + in_doubt, keys);
  EXPECT_GE(std::stoi(Psql(database_.uri()).run("SELECT count(*) FROM idem.slots")), executed);
}

TEST_F(PostgresFaults, V15_a_server_that_is_away_is_reported_at_once_and_found_again) {
  PostgresServer server;
  const auto store = open_by_uri(server.uri());
  const Execute attempt = run(*store, 1);
  server.stop();
  const auto refused = try_ask(*store, a_reserve(2));
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().code, StoreError::Code::refused) << refused.error().detail;
  server.start();
  for (;;) {  // Until the next attempt to reach it, which nobody has to ask for.
    const auto reply = try_ask(*store, a_complete(attempt));
    if (reply) {
      EXPECT_NE(reply->verdict, Verdict::stale);
      break;
    }
    EXPECT_NE(reply.error().code, StoreError::Code::refused) << reply.error().detail;
    back_off();
  }
  EXPECT_TRUE(is<Replay>(try_ask(*store, a_reserve(1, 2)).value()));
}

TEST_F(PostgresFaults, S02_a_later_server_at_that_place_must_be_the_same_store) {
  PostgresServer server;
  const auto store = open_by_uri(server.uri());
  run(*store, 1);
  Psql(server.uri()).run("UPDATE idem.identity SET store_id = gen_random_uuid()");
  Psql(server.uri())
      .run(
          "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
          " WHERE application_name = 'idem'");
  const auto refused = try_ask(*store, a_reserve(1, 2));
  ASSERT_FALSE(refused.has_value());
  const std::string other = Psql(server.uri()).run("SELECT store_id::text FROM idem.identity");
  EXPECT_NE(refused.error().detail.find("another store, " + other), std::string::npos)
      << refused.error().detail;
}

TEST_F(PostgresFaults, V15_a_lock_that_is_not_granted_is_reported_and_nothing_was_done) {
  const auto store = open_by_uri(database_.uri());
  const Execute attempt = run(*store, 1);
  ASSERT_EQ(try_ask(*store, a_mark_unknown(attempt))->verdict, Verdict::done);
  Psql application(database_.uri());
  application.run("BEGIN");
  application.run("SELECT id FROM idem.slots WHERE id = " + handle(attempt.id) +
                  "::uuid FOR UPDATE");
  Resolve verb = a_resolve(1, Resolve::As::completed, attempt.attempt.fence);
  const auto refused = try_ask(*store, verb);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, StoreError::Code::unavailable) << refused.error().detail;
  run(*store, 2);
  application.run("ROLLBACK");
  EXPECT_EQ(try_ask(*store, Find{key(1)}).value()->state, State::unknown);
  EXPECT_EQ(try_ask(*store, verb)->verdict, Resolve::Verdict::done);
}

// Any role that may connect can take it, and nothing said why no reserve went on.
TEST_F(PostgresFaults, V15_who_holds_the_stores_own_lock_is_named) {
  const auto store = open_by_uri(database_.uri());
  const TestRole stranger(database_.uri());
  Psql session(stranger.uri());
  session.run("SELECT pg_advisory_lock(1229210957, 1)");
  const auto refused = try_ask(*store, a_reserve_in(*store, 1, 1));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, StoreError::Code::unavailable);
  const std::string holder =
      "pid " + session.run("SELECT pg_backend_pid()") + " of user " + stranger.name();
  EXPECT_NE(refused.error().detail.find(holder), std::string::npos) << refused.error().detail;
  session.run("SELECT pg_advisory_unlock(1229210957, 1)");
  EXPECT_TRUE(is<Execute>(*try_ask(*store, a_reserve_in(*store, 1, 1))));
}

TEST_F(PostgresFaults, V15_of_two_services_in_a_deadlock_one_is_rolled_back_as_a_whole) {
  const auto store = open_by_uri(database_.uri());
  const Execute attempts[] = {run(*store, 1), run(*store, 2)};
  Psql(database_.uri()).run("CREATE TABLE payments (service int)");
  std::latch both_hold(2);
  std::string failures[2];
  std::vector<std::thread> services;
  for (std::size_t i = 0; i < 2; ++i) {
    services.emplace_back([&, i] {
      const auto complete = [&](const Execute& attempt) {
        return "SELECT idem.complete(" + args(attempt) + ", 201, '[]', 'by a service')";
      };
      Psql session(database_.uri());
      session.run("BEGIN");
      session.run("INSERT INTO payments VALUES (" + std::to_string(i) + ")");
      session.run(complete(attempts[i]));
      both_hold.arrive_and_wait();
      failures[i] = session.try_run(complete(attempts[1 - i]));
      session.try_run("COMMIT");
    });
  }
  for (auto& service : services) service.join();
  // Each waits for a while only, so that both may give up; one that does leaves nothing.
  const bool has_one_won = failures[0].empty() || failures[1].empty();
  EXPECT_FALSE(failures[0].empty() && failures[1].empty());
  for (const std::string& failure : failures) {
    EXPECT_TRUE(failure.empty() || failure == "IDM04" || failure == "40P01") << failure;
  }
  EXPECT_EQ(Psql(database_.uri()).run("SELECT count(*) FROM payments"), has_one_won ? "1" : "0");
  for (const Execute& attempt : attempts) {
    EXPECT_EQ(try_ask(*store, Find{attempt.id}).value()->state,
              has_one_won ? State::completed : State::in_progress);
  }
}

// A reviewer's: one reserve resumed the record under its former name, another one, for which that
// was over by then, made it anew.
TEST_F(PostgresFaults, S02_S05_a_record_of_two_names_is_one_though_its_time_ends_meanwhile) {
  const auto store = open_by_uri(database_.uri());
  Reserve old = a_reserve(1);
  old.retention = 1500ms;
  old.tombstone = Millis(0);
  old.generation = store->identity().generation;
  const auto first = std::get<Execute>(*ask_and_wait(*store, old));
  ASSERT_EQ(try_ask(*store, a_release(first))->verdict, Verdict::done);
  Reserve renamed = a_reserve(2);
  renamed.also = {{key(1)}};
  const std::string fingerprint =
      "'\\x00000001" + to_hex(renamed.fingerprints.front().digest) + "'::bytea";
  const auto by_hand = [&](const std::string& attempt) {
    return fmt::format(
        "SELECT (idem.reserve_alone({}, {}::uuid, 'tenant-1', 'pay', {}, '{}'::uuid, 'n', 60000, "
        "'unknown', true,"
        " 86400000, 0, ARRAY[{}::uuid], ARRAY[''::bytea], NULL)).outcome",
        old.generation, handle(key(2)), fingerprint, attempt, handle(key(1)));
  };
  Psql slow(database_.uri());
  slow.run("BEGIN");
  ASSERT_EQ(slow.run(by_hand(to_hex(token(7).bytes))), "execute");
  // Until the failed record's time is over for who looks at what is committed.
  Psql clock(database_.uri());
  while (clock.run("SELECT idem.now() < expires_at FROM idem.slots WHERE id = " + handle(key(1))) ==
         "t") {
  }
  Psql quick(database_.uri());
  EXPECT_EQ(quick.run(by_hand(to_hex(token(8).bytes))), "in_progress");
  slow.run("COMMIT");
  EXPECT_EQ(quick.run(by_hand(to_hex(token(8).bytes))), "in_progress");
}

TEST_F(PostgresFaults, S15_a_day_that_is_over_is_emptied_though_its_table_cannot_be_dropped) {
  const auto store = open_by_uri(database_.uri());
  Psql session(database_.uri());
  session.run("SELECT idem.make_day(DATE '2020-01-01')");
  session.run("INSERT INTO idem.answers VALUES ('2020-01-01 12:00Z', 1, 'head', 'body')");
  Psql reader(database_.uri());
  reader.run("BEGIN");
  reader.run("SELECT count(*) FROM idem.answers WHERE expires_at > '2021-01-01'");
  session.run("SELECT idem.drop_old_days()");
  reader.run("COMMIT");
  EXPECT_EQ(session.run("SELECT count(*) FROM idem.answers WHERE number = 1"), "0");
  session.run("SELECT idem.drop_old_days()");
  EXPECT_EQ(session.run("SELECT to_regclass('idem.answers_20200101') IS NULL"), "t");
}

/// A pooler in either mode, and one that has too few connections for all that want one.
class PostgresPooled : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(PostgresPooled, V15_works_as_far_as_there_are_connections) {
  PostgresServer server;
  const auto [mode, connections] = GetParam();
  auto store = open_postgres(server.pooled_uri(mode, connections), test_settings(), {});
  ASSERT_TRUE(store.has_value()) << store.error().detail;
  const bool is_enough = connections >= 10 || std::string(mode) == "transaction";
  int done = 0;
  for (int number = 1; number <= 20; ++number) {
    Reserve verb = a_reserve(number);
    verb.generation = (*store)->identity().generation;
    const auto outcome = ask_and_wait(**store, verb);
    if (!outcome) {
      EXPECT_FALSE(is_enough) << outcome.error().detail;
      EXPECT_NE(outcome.error().code, StoreError::Code::refused);
      break;
    }
    const auto reply = ask_and_wait(**store, a_complete(std::get<Execute>(*outcome)));
    EXPECT_TRUE(reply || !is_enough) << reply.error().detail;
    if (!reply) break;
    EXPECT_EQ(reply->verdict, Verdict::done);
    ++done;
  }
  EXPECT_EQ(done == 20, is_enough) << done;
}

INSTANTIATE_TEST_SUITE_P(Modes, PostgresPooled,
                         testing::Values(std::pair("transaction", 10), std::pair("transaction", 1),
                                         std::pair("session", 10), std::pair("session", 1)),
                         [](const auto& named) {
                           return std::string(named.param.first) + "_" +
                                  std::to_string(named.param.second);
                         });

}  // namespace
}  // namespace idem::test
