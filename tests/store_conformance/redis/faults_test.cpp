#include "store_conformance/faults.hpp"
#include "store_conformance/redis/asking.hpp"
#include "support/back_off.hpp"

#include <fmt/format.h>

/// The store in Redis when its server or the way there fails, or is not what it should be.
namespace idem::test {
namespace {

/// Asks until the store can be reached again.
template <class Verb>
typename Verb::Reply ask_until_answered(Store& store, Verb verb) {
  for (int tries = 0; tries < 500; ++tries) {
    auto reply = try_ask(store, verb);
    if (reply) return std::move(*reply);
    EXPECT_NE(reply.error().code, StoreError::Code::refused) << reply.error().detail;
    back_off();
  }
  ADD_FAILURE() << "never answered";
  return {};
}

std::string through(const CuttingProxy& proxy) {
  return fmt::format("redis://127.0.0.1:{}", proxy.port());
}

// ---- the way there ----

TEST(RedisFaults, S04_two_duplicates_whose_reply_was_lost_are_one_execution) {
  const RedisServer server;
  CuttingProxy proxy(server.socket());
  const auto store = open_at(through(proxy));
  lose_replies_to_duplicates(*store, proxy, "EVALSHA");
}

TEST(RedisFaults, S04_a_settling_write_whose_reply_was_lost_is_reported_as_done) {
  const RedisServer server;
  CuttingProxy proxy(server.socket());
  const auto store = open_at(through(proxy));
  lose_replies_to_completions(*store, proxy, "EVALSHA", {Verdict::done});
}

TEST(RedisFaults, S02_scripts_that_the_server_forgot_are_brought_again) {
  const RedisServer server;
  const auto store = open_at(server.url());
  for (int number = 1; number <= 20; ++number) {
    server.ask("script flush");
    const Execute attempt = run(*store, number);
    server.ask("script flush");
    EXPECT_EQ(try_ask(*store, a_complete(attempt))->verdict, Verdict::done);
  }
}

TEST(RedisFaults, S04_a_server_that_sleeps_makes_calls_late_and_loses_none) {
  const RedisServer server;
  const auto store = open_at(server.url());
  const Execute attempt = run(*store, 1);
  std::thread asleep([&] { server.ask("debug sleep 1.5"); });
  for (int number = 2; number <= 40; ++number) run(*store, number);
  EXPECT_EQ(try_ask(*store, a_complete(attempt))->verdict, Verdict::done);
  asleep.join();
  for (int number = 2; number <= 40; ++number) {
    EXPECT_TRUE(is<InProgress>(*try_ask(*store, a_reserve(number, 2))));
  }
}

TEST(RedisFaults, S04_a_step_that_comes_late_is_made_for_the_moment_in_which_it_counts) {
  RedisServer server;
  const auto store = open_at(server.url());
  Reserve verb = a_reserve_in(*store, 1);
  verb.lease = 2s;
  run(*store, 2);
  // Held back for longer than its lease: it must not be written as one that is over already.
  server.pause();
  std::promise<std::expected<ReserveOutcome, StoreError>> reply;
  ask(*store, verb, [&](auto outcome) { reply.set_value(std::move(outcome)); });
  std::this_thread::sleep_for(2500ms);  // The server's clock has no hands that a test could move.
  server.go_on();
  const auto outcome = reply.get_future().get();
  ASSERT_TRUE(outcome && is<Execute>(*outcome));
  const auto other = try_ask(*store, a_reserve(1, 2));
  ASSERT_TRUE(other && is<InProgress>(*other)) << describe(*other);
  EXPECT_GT(std::get<InProgress>(*other).lease_remaining, 1s);
}

// The time for tries counted from the start of the call, so that a slow first write left none.
// The answer was at hand, and the error said that other writers keep changing the record.
TEST(RedisFaults, S04_a_duplicate_whose_first_write_is_slow_gets_its_answer) {
  const RedisServer server;
  const auto store = open_at(server.url());
  run(*store, 1);
  // Longer than the store repeats a step.
  server.ask("client pause 3500 write");
  const auto outcome = try_ask(*store, a_reserve(1, 2));
  ASSERT_TRUE(outcome.has_value()) << outcome.error().detail;
  EXPECT_TRUE(is<InProgress>(*outcome)) << describe(*outcome);
}

TEST(RedisFaults, S04_a_decision_whose_reply_is_lost_is_recognised_and_made_once) {
  const RedisServer server;
  CuttingProxy proxy(server.socket());
  const auto store = open_at(through(proxy));
  const Execute attempt = run(*store, 1);
  ASSERT_TRUE(try_ask(*store, a_mark_unknown(attempt)));
  const Resolve verb = a_resolve(1, Resolve::As::completed, attempt.attempt.fence);
  proxy.lose_answer_to(verb.evidence);  // The write has it, the reading before it has not.
  const auto reply = try_ask(*store, verb);
  ASSERT_TRUE(reply.has_value()) << reply.error().detail;
  EXPECT_EQ(reply->verdict, Resolve::Verdict::done);
  EXPECT_EQ(proxy.lost(), 1);
  EXPECT_EQ(try_ask(*store, ReadEvidence{key(1)})->size(), 1U);
}

TEST(RedisFaults, S04_a_claim_whose_reply_is_lost_has_its_request) {
  const RedisServer server;
  CuttingProxy proxy(server.socket());
  const auto store = open_at(through(proxy));
  const auto accepted = try_ask(*store, Accept{a_reserve_in(*store, 1), "POST / please"});
  ASSERT_TRUE(accepted && is<Pending>(*accepted));
  const Claim claim{token(9), "dispatcher", std::chrono::hours(1), false};
  proxy.lose_answer_to(claim.owner);  // Of the write.
  const auto claimed = try_ask(*store, claim);
  ASSERT_TRUE(claimed && *claimed) << "not: nothing is due";
  EXPECT_EQ((*claimed)->attempt.token, token(9));
  EXPECT_EQ(proxy.lost(), 1);
}

// `idem store copy` asks for a thousand at once, and a busy server runs the last of them seconds
// later: the copy ended with "other writers keep changing this record", and there was none.
TEST(RedisFaults, S04_a_record_of_a_copy_is_put_however_late_its_command_is_run) {
  const RedisServer server;
  const auto store = open_at(server.url());
  const Execute first = run(*store, 1);
  ASSERT_EQ(try_ask(*store, a_complete(first))->verdict, Verdict::done);
  auto record = try_ask(*store, Find{key(1)});
  ASSERT_TRUE(record && *record);
  (*record)->id = key(2);
  // Writes alone: what is read before them comes at once. Longer than the store repeats a step.
  server.ask("client pause 3500 write");
  const PutRecord put{.id = key(2), .record = **record, .generation = store->identity().generation};
  const auto reply = try_ask(*store, put);
  ASSERT_TRUE(reply) << reply.error().detail;
  EXPECT_TRUE(reply->put);
  EXPECT_EQ(describe(*try_ask(*store, Find{key(2)})), describe(*record));
}

// ---- what a server forgets ----

TEST(RedisFaults, V09_a_server_that_is_killed_keeps_what_it_has_answered) {
  RedisServer server;
  const auto store = open_at(server.url());
  for (int round = 0; round < 5; ++round) {
    std::vector<Execute> running;
    for (int i = 0; i < 40; ++i) running.push_back(run(*store, 1 + round * 40 + i));
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(try_ask(*store, a_complete(running[static_cast<std::size_t>(i)]))->verdict,
                Verdict::done);
    }
    server.crash();
    const auto while_down = try_ask(*store, a_reserve(255));
    ASSERT_FALSE(while_down.has_value());
    EXPECT_NE(while_down.error().code, StoreError::Code::refused);
    server.start();
    for (int i = 0; i < 40; ++i) {
      const auto outcome = ask_until_answered(*store, a_reserve(1 + round * 40 + i, 2));
      EXPECT_TRUE(i < 20 ? is<Replay>(outcome) : is<InProgress>(outcome)) << describe(outcome);
    }
  }
}

TEST(RedisFaults, S02_a_server_that_lost_everything_lets_nothing_begin) {
  RedisServer server("appendonly=no");
  const auto store = open_at(server.url());
  const Execute attempt = run(*store, 1);
  server.crash();
  server.start();
  for (int i = 0; i < 40; ++i) {
    const auto outcome = try_ask(*store, a_reserve(1, 2));
    ASSERT_FALSE(outcome.has_value()) << describe(*outcome);
    EXPECT_NE(outcome.error().code, StoreError::Code::refused);
    back_off();
  }
  const auto late = try_ask(*store, a_complete(attempt));
  EXPECT_TRUE(!late || late->verdict == Verdict::stale);
  const auto again = open_at(server.url());
  EXPECT_TRUE(is<Execute>(*try_ask(*again, a_reserve(1, 2)))) << "an operator's decision";
}

TEST(RedisFaults, S02_flushall_lets_nothing_begin) {
  const RedisServer server;
  const auto store = open_at(server.url());
  const Execute attempt = run(*store, 1);
  server.ask("flushall");
  const auto outcome = try_ask(*store, a_reserve(1, 2));
  ASSERT_FALSE(outcome.has_value()) << describe(*outcome);
  EXPECT_EQ(outcome.error().code, StoreError::Code::unavailable);
  EXPECT_NE(outcome.error().detail.find("lost"), std::string::npos);
  const auto late = try_ask(*store, a_complete(attempt));
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->verdict, Verdict::stale);
}

TEST(RedisFaults, S02_full_memory_lets_nothing_begin_and_everything_end) {
  const RedisServer server;
  const auto store = open_at(server.url());
  const Execute attempt = run(*store, 1);
  server.ask("config set maxmemory 1mb");
  const auto outcome = try_ask(*store, a_reserve(2));
  ASSERT_FALSE(outcome.has_value()) << describe(*outcome);
  EXPECT_EQ(outcome.error().code, StoreError::Code::unavailable);
  EXPECT_NE(outcome.error().detail.find("OOM"), std::string::npos) << outcome.error().detail;
  EXPECT_EQ(try_ask(*store, a_complete(attempt))->verdict, Verdict::done);
  EXPECT_TRUE(is<Replay>(*try_ask(*store, a_reserve(1, 2)))) << "and the stored answer is replayed";
  server.ask("config set maxmemory 0");
  run(*store, 2);
}

// ---- changes of the identity that nobody ended ----

TEST(RedisFaults, S02_a_bucket_left_closed_is_opened_by_the_next_asker) {
  const RedisServer server;
  const auto store = open_at(server.url());
  const std::string closed = "{idem:01}meta";
  server.ask("hset " + closed + " generation closed");
  run(*store, 1);
  EXPECT_TRUE(server.ask("hget " + closed + " generation").starts_with("1:"));
}

// A reviewer's: nodes of the store before and after would have run each key once each.
TEST(RedisFaults, S02_a_node_of_the_store_before_is_not_let_in_by_the_one_after) {
  const RedisServer server;
  const auto before = open_at(server.url());
  run(*before, 1);
  server.ask("flushall");
  const auto after = open_at(server.url());
  run(*after, 1);
  const auto outcome = try_ask(*before, a_reserve(2));
  ASSERT_FALSE(outcome.has_value()) << describe(*outcome);
  run(*after, 2);
}

// A reviewer's: each start counted up until it was let into the buckets of the store before.
TEST(RedisFaults, S02_a_store_whose_identity_is_lost_is_not_made_anew_over_its_records) {
  const RedisServer server;
  open_at(server.url()).reset();
  server.ask("del {idem}identity");
  for (int start = 0; start < 4; ++start) {
    const Opened store = open_redis(server.url(), test_settings(), {});
    ASSERT_FALSE(store.has_value());
    EXPECT_NE(store.error().detail.find("another store"), std::string::npos)
        << store.error().detail;
  }
}

// A reviewer's: it ended the process, and the next one's.
TEST(RedisFaults, S12_a_completed_record_without_its_answer_is_reported_as_damaged) {
  const RedisServer server;
  const auto store = open_at(server.url());
  Reserve verb = a_reserve(1);
  verb.id.bytes.fill('a');
  const auto first = try_ask(*store, verb);
  ASSERT_TRUE(first && is<Execute>(*first));
  Complete complete = a_complete(std::get<Execute>(*first));
  ASSERT_EQ(try_ask(*store, complete)->verdict, Verdict::done);
  server.ask("del {idem:61}aaaaaaaaaaaaaaaaa");
  verb.token = token(2);
  const auto outcome = try_ask(*store, verb);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_NE(outcome.error().detail.find("its answer is missing"), std::string::npos);
  EXPECT_EQ(try_ask(*store, complete)->verdict, Verdict::settled);
  EXPECT_FALSE(try_ask(*store, Find{verb.id}).has_value());
}

// A reviewer's: a key ran twice while its slot moved, half of its keys here, half of them there.
TEST(RedisFaults, S05_a_slot_that_is_moving_lets_nothing_run_and_loses_nothing) {
  RedisCluster cluster;
  const auto store = open_at(cluster.url());
  const Execute done = run(*store, 1);
  ASSERT_EQ(try_ask(*store, a_complete(done))->verdict, Verdict::done);
  const std::string slot = cluster.servers()[0].ask("cluster keyslot '{idem:01}meta'");
  RedisServer* from = nullptr;
  for (RedisServer& one : cluster.servers()) {
    if (one.ask("exists '{idem:01}meta'") == "1") from = &one;
  }
  ASSERT_NE(from, nullptr);
  RedisServer* const to =
      from == &cluster.servers()[0] ? &cluster.servers()[1] : &cluster.servers()[0];
  const std::string from_id = from->ask("cluster myid");
  const std::string to_id = to->ask("cluster myid");
  to->ask("cluster setslot " + slot + " importing " + from_id);
  from->ask("cluster setslot " + slot + " migrating " + to_id);
  const std::string port = to->address().substr(to->address().find(':') + 1);
  from->ask("migrate 127.0.0.1 " + port + " '{idem:01}meta' 0 5000");
  const auto outcome = try_ask(*store, a_reserve(1, 2));
  EXPECT_TRUE(!outcome || is<Replay>(*outcome)) << describe(*outcome);
  run(*store, 2);  // Of another bucket.
  for (int moved = 0; moved < 1000; ++moved) {
    const std::string left = from->ask("cluster countkeysinslot " + slot);
    if (left == "0") break;
    from->ask("cluster getkeysinslot " + slot + " 1 | head -c -1 | xargs -0 redis-cli -s " +
              from->socket() + " migrate 127.0.0.1 " + port +
              " KEY 0 5000 2>/dev/null; redis-cli -s " + from->socket() +
              " --raw cluster getkeysinslot " + slot +
              " 1 | head -c -1 | xargs -0 -I{} redis-cli -s " + from->socket() +
              " migrate 127.0.0.1 " + port + " {} 0 5000");
  }
  for (RedisServer& one : cluster.servers()) one.ask("cluster setslot " + slot + " node " + to_id);
  const auto replayed = ask_until_answered(*store, a_reserve(1, 2));
  EXPECT_TRUE(is<Replay>(replayed)) << describe(replayed);
}

// Else another asker, for whom its time is not over yet, could resume it meanwhile.
TEST(RedisFaults, S02_S05_a_record_over_under_a_former_name_is_gone_before_there_is_a_new_one) {
  const RedisServer server;
  const auto store = open_at(server.url());
  Reserve old = a_reserve(1);
  old.retention = Millis(50);
  old.tombstone = Millis(50);
  const auto first = try_ask(*store, old);
  ASSERT_TRUE(first && is<Execute>(*first));
  ASSERT_EQ(try_ask(*store, a_complete(std::get<Execute>(*first)))->verdict, Verdict::done);
  Reserve renamed = a_reserve(2, 2);
  renamed.also = {{key(1)}};
  const auto outcome = [&] {
    for (int tries = 0;; ++tries) {
      auto reply = try_ask(*store, renamed);
      const bool is_over = reply && is<Execute>(*reply);
      if (is_over || tries == 400) return reply;
      back_off();
    }
  }();
  ASSERT_TRUE(outcome && is<Execute>(*outcome));
  EXPECT_EQ(std::get<Execute>(*outcome).id, key(2));
  EXPECT_EQ(server.ask("zcard {idem:01}due:reap"), "0");
  EXPECT_EQ(server.ask("hget {idem:01}meta in:3"), "");
}

TEST(RedisFaults, S02_fences_grow_also_where_the_servers_clock_has_gone_back) {
  const RedisServer server;
  const auto store = open_at(server.url());
  const Fence future = 4'000'000'000'000'000;  // Of a record that is gone, from the year 2096.
  server.ask(fmt::format("hset {{idem:01}}meta last_fence {}", future));
  EXPECT_GT(run(*store, 1).attempt.fence, future);
}

TEST(RedisFaults, S12_a_damaged_record_is_reported_as_such_and_runs_nothing) {
  const RedisServer server;
  const auto store = open_at(server.url());
  Reserve verb = a_reserve(1);
  verb.id.bytes.fill('a');
  ASSERT_TRUE(is<Execute>(*try_ask(*store, verb)));
  run(*store, 2);
  server.ask("set {idem:61}raaaaaaaaaaaaaaaa damaged");
  verb.token = token(2);
  const auto outcome = try_ask(*store, verb);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, StoreError::Code::damaged);
  EXPECT_EQ(outcome.error().record, verb.id);
  EXPECT_NE(outcome.error().detail.find("damaged"), std::string::npos);
  EXPECT_EQ(try_ask(*store, List{})->size(), 1U) << "the others are listed";
}

}  // namespace
}  // namespace idem::test
