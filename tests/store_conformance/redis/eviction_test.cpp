#include "store/store_copy.hpp"
#include "store/stores.hpp"
#include "store_conformance/redis/asking.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <latch>

/// A server that throws keys away between two looks at its settings.
namespace idem::test {
namespace {

Reserve reserve_numbered(std::uint32_t number, int token_number, std::uint64_t generation) {
  Reserve verb = a_reserve(1, token_number);
  // Over all buckets.
  verb.id.bytes.fill(static_cast<std::uint8_t>(number * 2654435761U >> 24));
  for (unsigned i = 0; i < 4; ++i) {
    verb.id.bytes[12 + i] = static_cast<std::uint8_t>(number >> 8 * i);
  }
  verb.generation = generation;
  return verb;
}

std::int64_t number_in(const RedisServer& server, const std::string& what) {
  const std::string info = server.ask("info");
  const auto at = info.find("\n" + what + ":");
  return at == info.npos ? -1 : std::strtoll(info.c_str() + at + what.size() + 2, nullptr, 10);
}

TEST(RedisEviction, T53_a_record_evicted_unnoticed_does_not_run_again) {
  constexpr std::uint32_t keys = 3'000;
  const RedisServer server;
  const auto store = open_at(server.url());
  const std::uint64_t generation = store->identity().generation;
  std::atomic<int> executed{0};
  {
    std::latch left(keys);
    for (std::uint32_t number = 0; number < keys; ++number) {
      idem::ask(*store, reserve_numbered(number, 1, generation), [&](auto outcome) {
        if (!outcome || !is<Execute>(*outcome)) return left.count_down();
        ++executed;
        const StoredResponse stored = answer(201, std::string(400, 'a'));
        idem::ask(*store, a_complete(std::get<Execute>(*outcome), stored),
                  [&](const auto&) { left.count_down(); });
      });
    }
    left.wait();
  }
  ASSERT_EQ(executed, keys);

  // Switched on and off again, so that no look at the settings can find it.
  const std::int64_t used = number_in(server, "used_memory");
  const std::string before = server.ask("dbsize");
  server.ask(fmt::format("config set maxmemory-policy allkeys-random maxmemory {}", used * 9 / 10));
  for (int turn = 0; number_in(server, "used_memory") > used * 9 / 10 && turn < 1'000; ++turn) {
    server.ask("ping");
  }
  server.ask("config set maxmemory-policy noeviction maxmemory 0");
  const std::int64_t evicted = number_in(server, "evicted_keys");
  ASSERT_GT(evicted, 100) << "of " << before;

  // Had the policy been seen meanwhile, nothing new would begin for a moment: that is over.
  const auto refused_for_policy = [&](std::uint32_t number) {
    const auto outcome = ask_and_wait(*store, reserve_numbered(number, 3, generation));
    return !outcome && outcome.error().detail.find("maxmemory-policy") != std::string::npos;
  };
  for (int turn = 0; turn < 1'000 && refused_for_policy(keys + 1); ++turn) server.ask("ping");

  std::atomic<int> twice{0};
  std::atomic<int> replayed{0};
  std::atomic<int> damaged{0};
  std::atomic<int> unavailable{0};
  std::latch left(keys);
  for (std::uint32_t number = 0; number < keys; ++number) {
    idem::ask(*store, reserve_numbered(number, 2, generation), [&](const auto& outcome) {
      if (outcome) {
        if (is<Replay>(*outcome)) ++replayed;
        if (is<Execute>(*outcome)) ++twice;
      } else {
        ++(outcome.error().code == StoreError::Code::damaged ? damaged : unavailable);
      }
      left.count_down();
    });
  }
  left.wait();
  std::cout << fmt::format(
      "{} keys evicted; of {} retries {} ran again, {} replayed, {} damaged, {} unavailable\n",
      evicted, keys, twice.load(), replayed.load(), damaged.load(), unavailable.load());
  EXPECT_EQ(twice, 0);
  EXPECT_EQ(twice + replayed + damaged + unavailable, static_cast<int>(keys));
  EXPECT_GT(damaged, 0);
}

TEST(RedisEviction, T53_a_copy_of_a_store_that_lost_records_is_refused) {
  for (const char* const lost : {"r", "due:reap"}) {
    const RedisServer server;
    const auto store = open_at(server.url());
    const std::uint64_t generation = store->identity().generation;
    for (std::uint32_t number = 0; number < 20; ++number) {
      const auto outcome = ask_and_wait(*store, reserve_numbered(number, 1, generation));
      ASSERT_TRUE(outcome && is<Execute>(*outcome));
      ASSERT_TRUE(ask_and_wait(*store, a_complete(std::get<Execute>(*outcome))));
    }
    const auto target = open_memory(test_settings());
    ASSERT_TRUE(target);
    const auto copy = [&] {
      return copy_records(*store, **target, CopySource::kept, [](const CopyPass&) {});
    };
    const auto whole = copy();
    ASSERT_TRUE(whole) << whole.error().why;
    EXPECT_EQ(whole->records, 20U);
    const std::string keys = server.ask(fmt::format("--raw keys '*}}{}*'", lost));
    const auto name = keys.substr(0, keys.find('\n'));
    ASSERT_NE(name, "") << keys;
    server.ask(
        fmt::format("eval \"return redis.call('DEL', redis.call('KEYS', '*}}{}*')[1])\" 0", lost));
    const auto refused = copy();
    ASSERT_FALSE(refused) << lost;
    EXPECT_EQ(refused.error().kind, CopyError::Kind::damaged) << refused.error().why;
  }
}

TEST(RedisEviction, T53_an_entry_beside_a_record_is_missed_too) {
  const RedisServer server;
  const auto store = open_at(server.url());
  const auto lettered = [](char letter, int token_number = 1) {
    Reserve verb = a_reserve(1, token_number);
    verb.id.bytes.fill(static_cast<std::uint8_t>(letter));
    return verb;
  };
  const auto code_of = [&](Reserve verb) {
    const auto outcome = try_ask(*store, std::move(verb));
    return outcome ? std::optional<StoreError::Code>() : outcome.error().code;
  };
  for (const char letter : {'a', 'b', 'c'}) {
    const auto won = try_ask(*store, lettered(letter));
    ASSERT_TRUE(won && is<Execute>(*won));
    ASSERT_TRUE(try_ask(*store, a_complete(std::get<Execute>(*won))));
  }
  const std::string a(16, 'a');
  const std::string b(16, 'b');
  server.ask("del {idem:61}r" + a);
  EXPECT_EQ(code_of(lettered('a', 2)), StoreError::Code::damaged) << "the record";
  server.ask("del {idem:62}r" + b + " {idem:62}due:reap");
  EXPECT_EQ(code_of(lettered('b', 2)), StoreError::Code::unavailable) << "and what lists it";
  EXPECT_FALSE(try_ask(*store, Find{lettered('b').id}));
  server.ask("del {idem:63}a" + std::string(16, 'c'));
  EXPECT_EQ(code_of(lettered('c', 2)), StoreError::Code::damaged) << "its answer";
  // An older name under which it lay is looked at, too.
  Reserve renamed = lettered('d', 3);
  renamed.also = {{lettered('a').id}};
  EXPECT_EQ(code_of(renamed), StoreError::Code::damaged);
  EXPECT_EQ(code_of(lettered('e')), std::nullopt) << "other buckets go on";
}

}  // namespace
}  // namespace idem::test
