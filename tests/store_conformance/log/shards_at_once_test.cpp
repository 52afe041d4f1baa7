#include "store_conformance/log/shards.hpp"

#include <fmt/format.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

/// Several shards that are asked by several threads: what is one for all of them stays one.
namespace idem::test {
namespace {

/// Asks from several threads at once.
class ShardsAtOnce : public Shards {
 protected:
  static constexpr int threads = 8;

  void at_once(const std::function<void(int thread)>& work) {
    std::latch all(threads);
    std::vector<std::jthread> running;
    for (int thread = 0; thread < threads; ++thread) {
      running.emplace_back([&, thread] {
        all.arrive_and_wait();
        work(thread);
      });
    }
  }
};

// By turns: each asker begins with another name, or all do with one, and only some know the others.
TEST_F(ShardsAtOnce, T01_of_reserves_under_names_of_several_shards_one_executes) {
  open(4);
  constexpr std::uint64_t requests = 600;
  for (std::uint64_t request = 0; request < requests; ++request) {
    const bool is_one_first = request % 2 == 1;
    std::vector<RecordId> names;
    for (std::uint64_t name = 0; name < 3; ++name) names.push_back(numbered(request * 3 + name));
    std::atomic<int> executed = 0;
    at_once([&](int thread) {
      const std::size_t first = is_one_first ? 0 : static_cast<std::size_t>(thread) % names.size();
      Reserve verb = reserve_of(names[first], 1 + thread);
      for (std::size_t i = 1; i < names.size() && !(is_one_first && thread % 2 == 0); ++i) {
        verb.also.push_back({names[(first + i) % names.size()], {}});
      }
      const auto outcome = ask_and_wait(*store_, verb);
      ASSERT_TRUE(outcome) << outcome.error().detail;
      if (is<Execute>(*outcome)) ++executed;
    });
    ASSERT_EQ(executed, 1) << request;
  }
}

TEST_F(ShardsAtOnce, S05_T39_a_quota_is_one_of_all_shards) {
  open(4);
  constexpr std::uint64_t most = 100;
  std::atomic<std::uint64_t> made = 0;
  std::atomic<std::uint64_t> next = 0;
  const auto reserve_many = [&](int) {
    for (int i = 0; i < 50; ++i) {
      Reserve verb = reserve_of(numbered(next.fetch_add(1)));
      verb.quota = Quota{.active_keys = most};
      const auto outcome = ask_and_wait(*store_, verb);
      ASSERT_TRUE(outcome) << outcome.error().detail;
      if (is<Execute>(*outcome)) ++made;
    }
  };
  at_once(reserve_many);
  EXPECT_EQ(made, most);
  for (const std::uint32_t shards : {4U, 2U, 1U}) {
    open(shards);
    reserve_many(0);
    EXPECT_EQ(made, most) << "a start counts those of all shards";
  }
}

TEST_F(ShardsAtOnce, S02_fences_grow_over_all_shards_and_starts) {
  open(4);
  std::atomic<Fence> highest = 0;
  std::mutex mutex;
  std::set<Fence> fences;
  std::uint64_t first = 0;
  for (const std::uint32_t shards : {4U, 2U, 3U, 1U}) {
    open(shards);
    const Fence before = highest;
    at_once([&](int thread) {
      Fence last = 0;
      for (std::uint64_t i = 0; i < 50; ++i) {
        const auto outcome =
            ask_and_wait(*store_, reserve_of(numbered(first + i * threads + thread)));
        ASSERT_TRUE(outcome && is<Execute>(*outcome));
        const Fence fence = std::get<Execute>(*outcome).attempt.fence;
        EXPECT_GT(fence, std::max(last, before));
        last = fence;
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(fences.insert(fence).second);
      }
    });
    highest = *fences.rbegin();
    first += 50 * threads;
  }
}

// Each of its reserves is of the table before, or of the one after; none is lost in between.
TEST_F(ShardsAtOnce, S02_a_new_table_comes_to_all_shards_at_once) {
  open(4);
  const auto routes = [](std::uint64_t number) {
    return std::vector<RouteName>{{{"POST"}, "/v1/payments", fmt::format("pay{}", number), {}}};
  };
  std::atomic<std::uint64_t> present = ask(AdoptRoutes{routes(0)}).generation;
  std::atomic<bool> has_ended = false;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::uint64_t> next = 0;
  at_once([&](int thread) {
    if (thread == 0) {
      for (std::uint64_t number = 1; number <= 50; ++number) {
        const auto reply = ask_and_wait(*store_, AdoptRoutes{routes(number)});
        ASSERT_TRUE(reply) << reply.error().detail;
        ASSERT_EQ(reply->why_not, "");
        ASSERT_EQ(reply->generation, present + 1);
        present = reply->generation;
      }
      has_ended = true;
      return;
    }
    while (!has_ended) {
      const std::uint64_t generation = present;
      Reserve verb = reserve_of(numbered(next.fetch_add(1)));
      verb.generation = generation;
      verb.operation = "other";
      verb.quota = no_room;  // So that no record stands in the way of the next table.
      const auto outcome = ask_and_wait(*store_, verb);
      if (!outcome) ++refused;
      EXPECT_TRUE(outcome || present > generation || !has_ended) << outcome.error().detail;
    }
  });
  for (std::uint64_t number = 0; number < 20; ++number) {
    Reserve verb = reserve_of(numbered(number + 1'000'000));
    verb.generation = present;
    EXPECT_TRUE(ask_and_wait(*store_, verb).has_value());
  }
}

}  // namespace
}  // namespace idem::test
