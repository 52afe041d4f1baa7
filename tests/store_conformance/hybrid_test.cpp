#include "store/redis/hybrid_store.hpp"
#include "store/stores.hpp"
#include "store_conformance/forwarding_store.hpp"
#include "store_conformance/harness.hpp"
#include "support/back_off.hpp"
#include "support/external_data.hpp"
#include "support/redis.hpp"

#include <idem/limits.hpp>

#include <fmt/format.h>

#include <fstream>
#include <sstream>

/// protocol.md §20: whatever the cache says, or does not, is never a reason to run a request again,
/// and never anything that the deciding store would not say.
namespace idem::test {
namespace {

/// Counts what the deciding store is asked.
class Counted final : public ForwardingStore {
 public:
  Counted(std::shared_ptr<Store> inner, std::atomic<int>& reserves)
      : ForwardingStore(*inner), inner_(std::move(inner)), reserves_(reserves) {}
  void call(StoreCall what, StoreCompletion done) override {
    if (std::holds_alternative<Reserve>(what)) ++reserves_;
    ForwardingStore::call(std::move(what), std::move(done));
  }

 private:
  std::shared_ptr<Store> inner_;
  std::atomic<int>& reserves_;
};

class Hybrid : public testing::Test {
 protected:
  void SetUp() override {
    store_ = open(clock_.host().wall);
    ask_cache_once();
  }

  /// In front of a new store, which `truth_` is from then on.
  std::unique_ptr<Store> open(std::function<StoreTime()> clock) {
    truth_ = std::move(*open_memory(test_settings(), clock_.host().wall));
    return open_again(std::move(clock));
  }
  /// Another node, in front of the same store.
  std::unique_ptr<Store> open_again(std::function<StoreTime()> clock) {
    auto counted = std::make_unique<Counted>(truth_, asked_);
    const std::string fast = server_.url() + "/?prefix=" + prefix_;
    auto store = open_hybrid(std::move(counted), fast,
                             {.clock = std::move(clock), .reply_max = reply_max_, .warn = {}});
    return std::move(*store);
  }

  /// Until it is connected the store is asked. Entries of an earlier node prove nothing.
  void ask_cache_once() {
    if (const std::string before = key_in_cache(99); !before.empty()) server_.ask("del " + before);
    for (int tries = 0; tries < 400; ++tries) {
      const Execute attempt = run(99, tries + 1);
      ask(a_release(attempt));
      if (!key_in_cache(99).empty()) return;
      back_off();
    }
    ADD_FAILURE() << "the cache was never written to";
  }

  std::vector<std::string> keys() const {
    std::vector<std::string> found;
    std::istringstream lines(server_.ask("--scan --pattern '" + prefix_ + ":cache:*'"));
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty()) found.push_back(line);
    }
    return found;
  }
  std::string key_in_cache(int number) const {
    const std::string end = to_hex(key(number).bytes);
    for (const std::string& one : keys()) {
      if (one.ends_with(end)) return one;
    }
    return {};
  }

  /// cache_put.lua, as a node would run it with the entry that lies at `from`; what it answers.
  std::string put(const std::string& from, const std::string& to) {
    std::string text = read_file(IDEM_SOURCE_DIR "/schema/redis/cache_put.lua");
    for (const std::string_view entry : {"sub(ARGV[1]", "KEYS[1], ARGV[1]"}) {
      const std::string kept = std::string(entry.substr(0, entry.size() - 7));
      text.replace(text.find(entry), entry.size(), kept + "redis.call('GET', KEYS[2])");
    }
    std::ofstream(folder_.file("put.lua")) << text;
    return server_.ask("--eval " + folder_.file("put.lua") + " " + to + " " + from + " , - 60000");
  }

  template <class Verb>
  typename Verb::Reply ask(Verb verb) {
    if constexpr (std::is_same_v<Verb, Reserve>) verb.generation = store_->identity().generation;
    auto reply = ask_and_wait(*store_, std::move(verb));
    if (reply) return std::move(*reply);
    ADD_FAILURE() << reply.error().detail;
    return {};
  }
  Execute run(int key_number, int token_number = 1) {
    const auto outcome = ask(a_reserve(key_number, token_number));
    if (const auto* execute = std::get_if<Execute>(&outcome)) return *execute;
    ADD_FAILURE() << describe(outcome);
    return {};
  }
  /// The outcome of a reserve, and whether the deciding store was asked for it.
  std::pair<ReserveOutcome, bool> reserve(Reserve verb) {
    const int before = asked_;
    auto outcome = ask(std::move(verb));
    return {std::move(outcome), asked_ > before};
  }
  std::pair<ReserveOutcome, bool> reserve(int key_number, int token_number = 7) {
    return reserve(a_reserve(key_number, token_number));
  }

  RedisServer server_{"appendonly=no"};
  TempFolder folder_;
  std::string prefix_ = new_redis_prefix();
  TestClock clock_;
  std::atomic<int> asked_{0};
  Millis reply_max_ = 10s;
  std::shared_ptr<Store> truth_;
  std::unique_ptr<Store> store_;
};

TEST_F(Hybrid, S20_a_replay_asks_the_cache_alone_and_is_the_stores_answer) {
  const Execute attempt = run(1);
  ask(a_complete(attempt));
  const auto [outcome, was_asked] = reserve(1);
  EXPECT_FALSE(was_asked);
  ASSERT_TRUE(is<Replay>(outcome)) << describe(outcome);
  const auto& replay = std::get<Replay>(outcome);
  const auto record = ask(Find{key(1)});
  EXPECT_EQ(replay.response, *record->response);
  EXPECT_EQ(replay.completed_at, record->completed_at);
  EXPECT_EQ(replay.expires_at, record->expires_at);
  EXPECT_EQ(replay.expires_in, retention);
}

TEST_F(Hybrid, S20_a_herd_of_duplicates_gets_in_progress) {
  const Execute attempt = run(1);
  const auto [outcome, was_asked] = reserve(1);
  EXPECT_FALSE(was_asked);
  ASSERT_TRUE(is<InProgress>(outcome)) << describe(outcome);
  EXPECT_EQ(std::get<InProgress>(outcome).fence, attempt.attempt.fence);
  EXPECT_EQ(std::get<InProgress>(outcome).lease_remaining, lease);
}

TEST_F(Hybrid, S04_S20_an_asker_that_repeats_its_own_token_is_answered_by_the_store) {
  const Execute attempt = run(1, 5);
  const auto [outcome, was_asked] = reserve(1, 5);
  EXPECT_TRUE(was_asked);
  ASSERT_TRUE(is<Execute>(outcome)) << describe(outcome);
  EXPECT_EQ(std::get<Execute>(outcome).attempt, attempt.attempt);
}

TEST_F(Hybrid, S20_T55_in_flight_is_not_believed_for_long_nor_once_it_has_ended) {
  run(1);
  clock_.advance(limits::cache_in_flight_max);
  EXPECT_TRUE(reserve(1).second) << "well before the lease";
  const Execute released = run(2);
  ask(a_release(released));
  const auto [freed, was_asked] = reserve(2);
  EXPECT_TRUE(was_asked);
  EXPECT_TRUE(is<Execute>(freed)) << describe(freed);
  const Execute lost = run(3);
  ask(a_mark_unknown(lost));
  EXPECT_TRUE(is<Unknown>(reserve(3).first));
}

TEST_F(Hybrid, S20_an_owner_that_gives_only_the_token_ends_the_attempt_here_too) {
  ask(by_token(a_complete(run(1))));
  const auto [outcome, was_asked] = reserve(1);
  EXPECT_TRUE(was_asked);
  EXPECT_TRUE(is<Replay>(outcome)) << describe(outcome);
}

TEST_F(Hybrid, S20_a_fence_of_0_ends_the_attempt_here_as_the_token_alone_does) {
  Complete verb = a_complete(run(1));
  verb.attempt.fence = 0;
  ask(verb);
  const auto [outcome, was_asked] = reserve(1);
  EXPECT_TRUE(was_asked);
  EXPECT_TRUE(is<Replay>(outcome)) << describe(outcome);
}

TEST_F(Hybrid, S10_S20_an_answer_found_under_a_former_name_is_not_kept_under_the_asked_one) {
  Reserve first = a_reserve(1);
  first.fingerprints = {body(2)};
  const auto begun = ask(first);
  ASSERT_TRUE(is<Execute>(begun)) << describe(begun);
  // By token, so that its completion is not kept, and the replay would be.
  ask(by_token(a_complete(std::get<Execute>(begun))));
  Reserve renamed = a_reserve(1, 2);
  renamed.also = {{key(1), {body(2)}}};
  ASSERT_TRUE(is<Replay>(ask(renamed)));
  const auto [outcome, was_asked] = reserve(1);
  EXPECT_TRUE(is<KeyMisuse>(outcome)) << describe(outcome);
}

TEST_F(Hybrid, S20_T55_an_answer_is_not_believed_up_to_its_expiry) {
  ask(a_complete(run(1)));
  clock_.advance(retention);
  const auto [outcome, was_asked] = reserve(1);
  EXPECT_TRUE(was_asked);
  EXPECT_TRUE(is<Expired>(outcome)) << describe(outcome);
}

TEST_F(Hybrid, S20_without_an_estimate_of_the_stores_clock_nothing_is_believed) {
  ask(a_complete(run(1)));
  store_ = open_again({});
  ask_cache_once();  // Releases, which tell nothing of its clock.
  EXPECT_TRUE(reserve(1).second);
  EXPECT_FALSE(reserve(1).second) << "its answer carried the time";
}

TEST_F(Hybrid, S20_a_stored_5xx_is_never_kept) {
  const Execute attempt = run(1);
  ask(a_complete(attempt, answer(500, "it failed")));
  EXPECT_TRUE(is<Replay>(reserve(1).first));
  EXPECT_TRUE(reserve(1).second);
  ask(CacheBust{key(1), attempt.attempt.fence, "it may run again"});
  EXPECT_TRUE(is<Execute>(reserve(1).first));
}

TEST_F(Hybrid, S05_S20_misuse_and_other_generations_are_answered_by_the_store) {
  ask(a_complete(run(1)));
  Reserve other = a_reserve(1, 8);
  other.fingerprints = {body(2)};
  const auto [outcome, was_asked] = reserve(other);
  EXPECT_TRUE(was_asked);
  EXPECT_TRUE(is<KeyMisuse>(outcome)) << describe(outcome);
  Reserve late = a_reserve(1, 8);
  late.generation = store_->identity().generation + 1;
  const auto refused = ask_and_wait(*store_, late);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, StoreError::Code::refused);
}

// A reviewer's: a retry that was found by an older fingerprint made the cache answer requests that
// the store knows to be others.
TEST_F(Hybrid, S10_S20_an_answer_found_by_another_fingerprint_is_not_kept_under_this_one) {
  ask(a_complete(run(1)));
  server_.ask("flushall");
  Reserve retry = a_reserve(1, 8);
  retry.fingerprints = {body(2), body(1)};
  ASSERT_TRUE(is<Replay>(reserve(retry).first));
  reserve(3);  // Behind what that wrote, had it written.
  Reserve other = a_reserve(1, 9);
  other.fingerprints = {body(2)};
  const auto [outcome, was_asked] = reserve(other);
  EXPECT_TRUE(was_asked);
  EXPECT_TRUE(is<KeyMisuse>(outcome)) << describe(outcome);
}

// A reserve that is run once more keeps the fingerprint that its record was made with.
TEST_F(Hybrid, S10_S20_neither_is_the_answer_of_a_second_attempt) {
  ask(a_release(run(1)));
  Reserve retry = a_reserve(1, 8);
  retry.fingerprints = {body(2), body(1)};
  const auto outcome = ask(retry);
  ASSERT_TRUE(is<Execute>(outcome)) << describe(outcome);
  ask(a_complete(std::get<Execute>(outcome)));
  Reserve other = a_reserve(1, 9);
  other.fingerprints = {body(2)};
  EXPECT_TRUE(is<KeyMisuse>(reserve(other).first));
}

TEST_F(Hybrid, S20_T55_an_entry_damaged_moved_or_written_by_others_is_ignored) {
  ask(a_complete(run(1)));
  ask(a_complete(run(2), answer(200, "another answer")));
  const std::string first = key_in_cache(1);
  const std::string second = key_in_cache(2);
  ASSERT_FALSE(first.empty() || second.empty());
  EXPECT_FALSE(reserve(1).second);
  server_.ask("copy " + second + " " + first + " replace");
  auto [moved, was_asked] = reserve(1);
  EXPECT_TRUE(was_asked);
  EXPECT_EQ(std::get<Replay>(moved).response.body, "it ran");
  for (const int at : {0, 30, 45, 60, 100, 170}) {
    EXPECT_FALSE(reserve(2).second) << "whole";
    server_.ask("copy " + second + " kept");
    server_.ask(fmt::format("setrange {} {} '#'", second, at));
    auto [damaged, asked] = reserve(2);
    EXPECT_TRUE(asked) << at;
    EXPECT_EQ(std::get<Replay>(damaged).response.body, "another answer");
    server_.ask("copy kept " + second + " replace");
  }
  server_.ask("set " + first + " nonsense");
  EXPECT_TRUE(is<Replay>(reserve(1).first));
  server_.ask("del " + first);
  server_.ask("lpush " + first + " nonsense");
  EXPECT_TRUE(is<Replay>(reserve(1).first));
}

TEST_F(Hybrid, S20_T54_of_another_environment_nothing_is_believed) {
  ask(a_complete(run(1)));
  const std::string mine = key_in_cache(1);
  store_ = open(clock_.host().wall);  // Another store, the same cache.
  ask_cache_once();
  const Execute attempt = run(1);
  ask(a_release(attempt));
  std::string theirs;
  for (const std::string& one : keys()) {
    if (one != mine && one.ends_with(to_hex(key(1).bytes))) theirs = one;
  }
  ASSERT_FALSE(theirs.empty());
  server_.ask("copy " + mine + " " + theirs + " replace");
  EXPECT_TRUE(is<Execute>(reserve(1).first)) << "that answer is none of this store's";
}

TEST_F(Hybrid, S20_an_older_attempt_replaces_none_of_a_newer_one) {
  Reserve verb = a_reserve(1);
  verb.tombstone = Millis(0);
  const auto first = std::get<Execute>(ask(verb));
  ask(a_complete(first, answer(200, "the first answer")));
  server_.ask("copy " + key_in_cache(1) + " old");
  clock_.advance(retention);
  verb.token = token(2);
  const auto second = std::get<Execute>(ask(verb));
  ASSERT_GT(second.attempt.fence, first.attempt.fence);
  ask(a_complete(second, answer(200, "the second answer")));
  // A write that the first one's node still had on its way.
  EXPECT_EQ(put("old", key_in_cache(1)), "0");
  EXPECT_FALSE(reserve(1).second);
  EXPECT_EQ(std::get<Replay>(reserve(1).first).response.body, "the second answer");
}

TEST_F(Hybrid, S20_in_flight_does_not_come_back_once_its_attempt_has_ended) {
  const Execute attempt = run(1);
  server_.ask("copy " + key_in_cache(1) + " old");
  ask(a_complete(attempt));
  EXPECT_EQ(put("old", key_in_cache(1)), "0");
  EXPECT_EQ(put("old", "elsewhere"), "1") << "where nothing newer lies";
  EXPECT_TRUE(is<Replay>(reserve(1).first));
  const Execute released = run(2);
  server_.ask("copy " + key_in_cache(2) + " old replace");
  ask(a_release(released));
  reserve(3);  // Behind what the release wrote.
  EXPECT_EQ(put("old", key_in_cache(2)), "0");
  EXPECT_TRUE(is<Execute>(reserve(2).first));
}

// A lost reply: the same token asks again, now under the record's own name.
TEST_F(Hybrid, S20_a_lease_granted_under_a_former_name_is_reported_unchanged) {
  const auto granted = ask(a_reserve(1));
  ASSERT_TRUE(is<Execute>(granted));
  ask(a_release(std::get<Execute>(granted)));
  Reserve renamed = a_reserve(2, 3);
  renamed.also = {{key(1)}};
  const auto again = ask(renamed);
  ASSERT_TRUE(is<Execute>(again));
  ASSERT_EQ(std::get<Execute>(again).id, key(1)) << "the record keeps its name";
  clock_.advance(1s);
  ASSERT_TRUE(is<Execute>(ask(a_reserve(1, 3))));
  const auto duplicate = reserve(1, 7).first;
  ASSERT_TRUE(is<InProgress>(duplicate));
  EXPECT_EQ(std::get<InProgress>(duplicate).lease_remaining, lease - 1s);
}

TEST_F(Hybrid, S20_T54_a_cache_that_is_gone_forgets_no_key) {
  std::vector<Execute> running;
  for (int number = 1; number <= 20; ++number) running.push_back(run(number));
  for (int number = 1; number <= 10; ++number) {
    ask(a_complete(running[static_cast<std::size_t>(number) - 1]));
  }
  const auto all_are_known = [&](const char* when) {
    for (int number = 1; number <= 20; ++number) {
      if (number == 11) continue;  // It ends under way.
      const auto outcome = reserve(number).first;
      EXPECT_TRUE(number <= 10 ? is<Replay>(outcome) : is<InProgress>(outcome))
          << when << ", " << number << ": " << describe(outcome);
    }
  };
  server_.crash();
  all_are_known("killed");
  ask(a_complete(running[10]));
  EXPECT_TRUE(is<Replay>(reserve(11).first));
  run(30);
  server_.start();
  running[10] = {};
  for (int tries = 0; tries < 400 && reserve(1).second; ++tries) back_off();
  EXPECT_FALSE(reserve(1).second) << "it is used again, and was filled again";
  EXPECT_TRUE(is<Replay>(reserve(11).first));
  server_.ask("flushall");
  EXPECT_TRUE(is<Replay>(reserve(1).first)) << "flushed";
  server_.ask("script flush");
  ask(a_complete(run(31)));
  for (int tries = 0; tries < 400 && reserve(31).second; ++tries) back_off();
  EXPECT_FALSE(reserve(31).second) << "the script was brought again";
  server_.ask("config set maxmemory-policy allkeys-random");
  server_.ask("config set maxmemory 1mb");
  all_are_known("evicted, as far as it goes");
}

TEST_F(Hybrid, S20_T54_a_cache_that_is_slow_holds_nobody_up_for_long) {
  reply_max_ = limits::cache_reply_max;
  store_ = open(clock_.host().wall);
  ask_cache_once();
  ask(a_complete(run(1)));
  for (int tries = 0; tries < 400 && reserve(1).second; ++tries) back_off();
  EXPECT_FALSE(reserve(1).second);
  server_.pause();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(is<Replay>(reserve(1).first));
  for (int number = 40; number < 60; ++number) ask(a_complete(run(number)));
  for (int number = 40; number < 60; ++number) EXPECT_TRUE(is<Replay>(reserve(number).first));
  server_.go_on();
  for (int tries = 0; tries < 400 && reserve(1).second; ++tries) back_off();
  EXPECT_FALSE(reserve(1).second);
}

TEST_F(Hybrid, S20_an_end_that_the_cache_missed_is_written_again) {
  reply_max_ = limits::cache_reply_max;
  store_ = open(clock_.host().wall);
  ask_cache_once();
  const Execute running = run(1);
  for (int tries = 0; tries < 400 && reserve(1).second; ++tries) back_off();
  ASSERT_TRUE(is<InProgress>(reserve(1).first));
  server_.pause();
  ask(a_complete(running));
  EXPECT_TRUE(is<Replay>(reserve(1).first)) << "which takes longer than the cache may";
  server_.go_on();
  // By the test's clock the attempt would be believed in flight for ever.
  for (int tries = 0; tries < 200 && !is<Replay>(reserve(1).first); ++tries) {
    back_off();
  }
  EXPECT_TRUE(is<Replay>(reserve(1).first));
}

TEST_F(Hybrid, S20_a_cache_that_is_not_there_keeps_nothing_from_starting) {
  server_.crash();
  store_ = open(clock_.host().wall);
  ask(a_complete(run(1)));
  EXPECT_TRUE(is<Replay>(reserve(1).first));
}

}  // namespace
}  // namespace idem::test
