#include "store/call_queue.hpp"
#include "store/embedded/shard_of.hpp"
#include "store_conformance/harness.hpp"

#include <idem/limits.hpp>

#include <latch>

/// The queue in front of a store's thread.
namespace idem::test {
namespace {

// All calls are about keys of one shard: each has a queue of its own.
TEST_P(StoreConformance, S04_new_work_is_refused_above_the_bound_and_owners_never) {
  const auto shard = [](int number) { return embedded::shard_of(key(number), shards_of_sharded); };
  int second = 2;
  while (shard(second) != shard(1)) ++second;
  const Execute won = run(1);
  std::latch entered(1);
  std::latch gate(1);
  idem::ask(store(), Find{key(1)}, [&](auto) {
    entered.count_down();
    gate.wait();
  });
  entered.wait();  // The store's thread now stands still.
  std::atomic<std::size_t> unavailable = 0;
  std::latch answered(limits::store_queue_max);
  for (std::size_t i = 0; i < limits::store_queue_max; ++i) {
    idem::ask(store(), Find{key(1)}, [&](auto) { answered.count_down(); });
  }
  for (int i = 0; i < 10; ++i) {
    Reserve verb = a_reserve(second, 1 + i);
    verb.generation = store().identity().generation;
    idem::ask(store(), verb, [&](const auto& reply) {
      if (!reply && reply.error().code == StoreError::Code::unavailable) ++unavailable;
    });
  }
  std::promise<Verdict> verdict;
  idem::ask(store(), a_complete(won),
            [&](const auto& reply) { verdict.set_value(reply->verdict); });
  gate.count_down();
  EXPECT_EQ(verdict.get_future().get(), Verdict::done);
  answered.wait();
  EXPECT_EQ(unavailable, 10u);
  EXPECT_FALSE(find(second)) << "refused means nothing was changed";
}

TEST_P(StoreConformance, S04_closing_finishes_the_calls_in_the_queue) {
  std::atomic<int> answered = 0;
  {
    const auto another = open_another("closing");
    for (int i = 0; i < 1'000; ++i) {
      Reserve verb = a_reserve(i % 200, 1 + i % 7);
      verb.generation = another->identity().generation;
      idem::ask(*another, verb, [&, &another_store = *another](const auto& reply) {
        EXPECT_TRUE(reply.has_value());
        // The calls of a completion are part of the queue, too.
        idem::ask(another_store, Find{key(1)}, [&](const auto&) { ++answered; });
      });
    }
  }
  EXPECT_EQ(answered, 1'000);
}

TEST(CallQueue, S04_a_batch_holds_the_calls_gathered_meanwhile_in_order_and_at_most_a_group) {
  CallQueue queue;
  const std::size_t many = limits::commit_group_max + 10;
  for (std::size_t i = 0; i < many; ++i) {
    Find find;
    find.id.bytes[0] = static_cast<std::uint8_t>(i);
    queue.push(find, {});
  }
  auto batch = queue.take(true);
  ASSERT_EQ(batch.calls.size(), limits::commit_group_max);
  EXPECT_EQ(std::get<Find>(batch.calls[3].call).id.bytes[0], 3);
  queue.push(Find{}, {});
  batch = queue.take(true);
  EXPECT_EQ(batch.calls.size(), 10u);
  batch = queue.take(true);
  EXPECT_EQ(batch.calls.size(), 1u);
  EXPECT_TRUE(queue.take(false).calls.empty());
  EXPECT_FALSE(queue.take(false).last);
  queue.close();
  EXPECT_TRUE(queue.take(true).last);
}

TEST(CallQueue, S04_calls_that_no_client_waits_for_come_along_and_are_never_forgotten) {
  CallQueue queue;
  queue.push(Reap{8}, {});
  queue.push(Find{}, {});
  queue.push(Sweep{8}, {});
  auto batch = queue.take(true);
  ASSERT_EQ(batch.calls.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<Find>(batch.calls[0].call)) << "clients first";
  EXPECT_TRUE(std::holds_alternative<Reap>(batch.calls[1].call));
  EXPECT_TRUE(std::holds_alternative<Sweep>(batch.calls[2].call));

  queue.push(Reap{8}, {});
  EXPECT_EQ(queue.take(true).calls.size(), 1u) << "nobody else came";
  queue.push(Reap{8}, {});
  queue.close();
  batch = queue.take(true);
  EXPECT_EQ(batch.calls.size(), 1u);
  EXPECT_FALSE(batch.last);
  EXPECT_TRUE(queue.take(true).last);
}

}  // namespace
}  // namespace idem::test
