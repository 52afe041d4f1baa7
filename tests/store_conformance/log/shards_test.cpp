#include "store/embedded/shard_of.hpp"
#include "store/log/backup_store.hpp"
#include "store/log/check_store.hpp"
#include "store/log/log_store.hpp"
#include "store_conformance/log/runs.hpp"
#include "store_conformance/lost_medium.hpp"

#include <fmt/format.h>

#include <latch>
#include <random>
#include <thread>

/// Stores whose records are spread over several writers (see also kill_test.cpp and
/// differential_test.cpp).
namespace idem::test {
namespace {

namespace fs = std::filesystem;

RecordId numbered(std::uint64_t number) {
  RecordId id;
  const std::uint64_t mixed = number * 0x9e3779b97f4a7c15U;
  std::memcpy(id.bytes.data(), &mixed, sizeof mixed);
  std::memcpy(id.bytes.data() + sizeof mixed, &number, sizeof number);
  return id;
}

Reserve reserve_of(const RecordId& id, int token_number = 1) {
  Reserve verb = a_reserve(1, token_number);
  verb.id = id;
  verb.generation = 1;
  return verb;
}

class Shards : public OnLostMedium {
 protected:
  std::string path(const std::string& part = "") const { return folder_.file("idem.store") + part; }

  std::expected<std::unique_ptr<Store>, StoreError> try_open(std::uint32_t shards) {
    return open_log(path(), test_settings(),
                    {.host = clock.host(),
                     .sizes = {.segment_bytes = 64UL << 10U,
                               .cache_bytes = 4UL << 20U,
                               .buffer_bytes = 128UL << 10U},
                     .shards = shards,
                     .moving = [this](std::uint32_t, std::uint64_t moved) { moved_ = moved; }});
  }
  void open(std::uint32_t shards) {
    store_.reset();
    auto store = try_open(shards);
    ASSERT_TRUE(store) << store.error().detail;
    store_ = std::move(*store);
  }
  std::string refusal(std::uint32_t shards) {
    const auto store = try_open(shards);
    return store ? "" : store.error().detail;
  }
  template <class Verb>
  typename Verb::Reply ask(Verb verb) {
    auto reply = ask_and_wait(*store_, std::move(verb));
    if (reply) return std::move(*reply);
    ADD_FAILURE() << reply.error().detail;
    return {};
  }
  Execute run(std::uint64_t number) {
    const auto outcome = ask(reserve_of(numbered(number)));
    EXPECT_TRUE(is<Execute>(outcome)) << describe(outcome);
    return is<Execute>(outcome) ? std::get<Execute>(outcome) : Execute{};
  }
  void complete_many(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t number = from; number < to; ++number) {
      ask(a_complete(run(number), answer(201, std::to_string(number))));
    }
  }
  void expect_answers(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t number = from; number < to; ++number) {
      const auto outcome = ask(reserve_of(numbered(number), 2));
      ASSERT_TRUE(is<Replay>(outcome)) << number << ": " << describe(outcome);
      ASSERT_EQ(std::get<Replay>(outcome).response.body, std::to_string(number));
    }
  }
  void expect_sound() {
    const auto report = segments::check_store(path(), {});
    ASSERT_TRUE(report) << report.error().why;
    EXPECT_EQ(report->found, 0) << report->findings.front().where << ": "
                                << report->findings.front().what;
  }
  int folders() const {
    if (!fs::exists(path("/shards"))) return 1;
    return 1 + static_cast<int>(std::distance(fs::directory_iterator(path("/shards")), {}));
  }

  using Parts = std::vector<std::string>;
  /// The parts' files as they are now, as a kill would leave them if the store is open and idle.
  void keep(const Parts& parts) {
    fs::remove_all(path(".kept"));
    fs::create_directories(path(".kept/shards"));
    for (const std::string& part : parts) {
      fs::copy(path(part), path(".kept" + part), fs::copy_options::recursive);
    }
  }
  void bring_back(const Parts& parts) {
    for (const std::string& part : parts) {
      fs::remove_all(path(part));
      fs::rename(path(".kept" + part), path(part));
    }
  }
  const Parts first_shard{"/commits", "/records", "/ids", "/index"};
  const Parts second_shard{"/shards/01"};

  std::optional<std::uint64_t> moved_;
};

TEST_F(Shards, records_are_spread_and_found_again) {
  open(4);
  EXPECT_EQ(folders(), 4);
  complete_many(0, 400);
  std::array<std::uint64_t, 4> in_shard{};
  for (std::uint64_t number = 0; number < 400; ++number) {
    ++in_shard[embedded::shard_of(numbered(number), 4)];
  }
  for (const std::uint64_t count : in_shard) EXPECT_GT(count, 60U);
  expect_answers(0, 400);
  expect_sound();
  open(0);
  EXPECT_EQ(folders(), 4) << "as the store has them";
  EXPECT_FALSE(moved_);
  expect_answers(0, 400);
  EXPECT_EQ(ask(Count{}).by_state[static_cast<std::size_t>(State::completed)], 400U);
}

TEST_F(Shards, a_start_with_another_number_moves_what_belongs_elsewhere) {
  open(1);
  complete_many(0, 300);
  const Execute runs = run(1'000);
  ask(a_mark_unknown(run(1'001)));
  Accept accept = an_accept(1, "POST / later");
  accept.as.id = numbered(1'002);
  accept.as.generation = 1;
  ask(accept);
  for (const std::uint32_t shards : {4U, 3U, 2U, 1U, 3U}) {
    open(shards);
    ASSERT_TRUE(moved_);
    EXPECT_GT(*moved_, 50U);
    EXPECT_EQ(folders(), static_cast<int>(shards));
    expect_answers(0, 300);
    EXPECT_TRUE(is<InProgress>(ask(reserve_of(numbered(1'000), 2))));
    EXPECT_TRUE(is<Unknown>(ask(reserve_of(numbered(1'001), 2))));
    EXPECT_TRUE(is<Pending>(ask(reserve_of(numbered(1'002), 2))));
    const Census census = ask(Count{});
    EXPECT_EQ(census.by_state[static_cast<std::size_t>(State::completed)], 300U);
    EXPECT_EQ(census.by_state[static_cast<std::size_t>(State::in_progress)], 1U);
    store_.reset();
    expect_sound();
  }
  open(3);
  Complete late = a_complete(runs);
  EXPECT_EQ(ask(late).verdict, Verdict::done) << "the owner's attempt was moved as it is";
  const auto claimed = ask(Claim{token(9), "x", lease, true});
  ASSERT_TRUE(claimed);
  EXPECT_EQ(claimed->request, "POST / later");
}

// Format 2: a program from before shards refuses the store, and so looks for no key in one of them.
TEST_F(Shards, T01_a_store_of_several_has_a_format_of_its_own) {
  const auto format = [&](const std::string& of) { return content_of(of + "/commits/format")[8]; };
  open(1);
  complete_many(0, 10);
  EXPECT_EQ(format(path()), 2);
  open(2);
  EXPECT_EQ(format(path()), 3);
  expect_answers(0, 10);
  ASSERT_TRUE(segments::back_up_store(path(), folder_.file("backup"), {}));
  EXPECT_EQ(format(folder_.file("backup")), 3);
  open(0);
  EXPECT_EQ(format(path()), 3);
  expect_answers(0, 10);
}

TEST_F(Shards, evidence_moves_also_where_its_record_is_gone) {
  open(1);
  std::vector<std::vector<EvidenceEntry>> before;
  for (std::uint64_t number = 0; number < 20; ++number) {
    ask(a_mark_unknown(run(number)));
    for (int i = 0; i < 3; ++i) {
      Resolve verb = a_resolve(1, Resolve::As::completed, 999);
      verb.id = numbered(number);
      verb.reason = std::to_string(i);
      ask(verb);
    }
    before.push_back(ask(ReadEvidence{numbered(number)}));
    ASSERT_EQ(before.back().size(), 3U);
  }
  Resolve of_none = a_resolve(1, Resolve::As::completed, 999);
  of_none.id = numbered(77);
  ask(of_none);
  for (const std::uint32_t shards : {4U, 2U, 3U}) {
    open(shards);
    for (std::uint64_t number = 0; number < 20; ++number) {
      EXPECT_EQ(ask(ReadEvidence{numbered(number)}), before[number]) << number;
    }
    EXPECT_EQ(ask(ReadEvidence{numbered(77)}).size(), 1U);
  }
}

TEST_F(Shards, T01_without_the_folder_of_a_shard_nothing_is_opened) {
  open(3);
  complete_many(0, 30);
  store_.reset();
  fs::rename(path("/shards/02"), path("/away"));
  EXPECT_NE(refusal(0).find("shard 2 of its records is missing"), std::string::npos) << refusal(0);
  EXPECT_NE(refusal(2).find("shard 2"), std::string::npos) << "not with fewer either";
  EXPECT_FALSE(segments::check_store(path(), {}));
  fs::rename(path("/shards/01"), path("/shards/02"));
  fs::rename(path("/away"), path("/shards/01"));
  EXPECT_NE(refusal(0).find("is not shard 1 of this store"), std::string::npos) << refusal(0);
  EXPECT_FALSE(segments::check_store(path(), {}));
  fs::rename(path("/shards/01"), path("/away"));
  fs::rename(path("/shards/02"), path("/shards/01"));
  fs::rename(path("/away"), path("/shards/02"));
  open(0);
  expect_answers(0, 30);
}

TEST_F(Shards, T01_a_shard_of_another_store_is_refused) {
  open(2);
  complete_many(0, 30);
  store_.reset();
  fs::rename(path(), path(".mine"));
  open(2);
  store_.reset();
  fs::rename(path("/shards/01"), path(".mine/shards/other"));
  fs::remove_all(path());
  fs::rename(path(".mine"), path());
  fs::rename(path("/shards/01"), path(".kept"));
  fs::rename(path("/shards/other"), path("/shards/01"));
  EXPECT_NE(refusal(0).find("is not shard 1 of this store"), std::string::npos) << refusal(0);
  const auto report = segments::check_store(path(), {});
  EXPECT_TRUE(!report || report->found > 0);
}

TEST_F(Shards, a_shard_alone_is_no_store) {
  open(2);
  store_.reset();
  const auto opened = open_log(path("/shards/01"), test_settings(), {.host = clock.host()});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().detail.find("is shard 1 of a store"), std::string::npos)
      << opened.error().detail;
  EXPECT_FALSE(segments::check_store(path("/shards/01"), {}));
}

// Its key would be looked for in another shard, and run again.
TEST_F(Shards, T01_what_cannot_be_read_is_not_moved_and_the_number_stays) {
  open(1);
  complete_many(0, 200);
  store_.reset();
  std::string file = path("/records/00000001.records");
  ASSERT_TRUE(fs::exists(file));
  std::string bytes = content_of(file);
  // In the middle of the first version of a record that would have to move.
  std::size_t at = std::string::npos;
  for (std::uint64_t number = 0; at == std::string::npos; ++number) {
    if (embedded::shard_of(numbered(number), 2) == 0) continue;
    const auto id = numbered(number).bytes;
    at = bytes.find(std::string_view(reinterpret_cast<const char*>(id.data()), id.size()));
    ASSERT_LT(number, 200U);
  }
  bytes[at + 40] = static_cast<char>(bytes[at + 40] ^ 0x55);
  put_content(file, bytes);
  EXPECT_NE(refusal(2).find("cannot be moved"), std::string::npos) << refusal(2);
  EXPECT_EQ(folders(), 1);
  open(0);
  EXPECT_EQ(ask(Count{}).by_state[static_cast<std::size_t>(State::completed)], 200U);
}

// As when the process was killed between the commits of two shards.
TEST_F(Shards, S02_a_shard_that_missed_a_new_table_gets_it_at_the_start) {
  const std::vector<RouteName> pay{{{"POST"}, "/v1/payments", "pay", {}}};
  const std::vector<RouteName> charge{{{"POST"}, "/v1/payments", "charge", {}}};
  for (const bool is_first_behind : {false, true}) {
    SCOPED_TRACE(is_first_behind);
    fs::remove_all(path());
    open(3);
    const auto before = ask(AdoptRoutes{pay});
    keep(is_first_behind ? first_shard : second_shard);
    const auto after = ask(AdoptRoutes{charge});
    ASSERT_EQ(after.generation, before.generation + 1);
    store_.reset();
    bring_back(is_first_behind ? first_shard : second_shard);
    open(0);
    const std::uint64_t present = is_first_behind ? before.generation : after.generation;
    for (std::uint64_t number = 0; number < 20; ++number) {
      for (const std::uint64_t generation : {before.generation, after.generation}) {
        Reserve verb = reserve_of(numbered(number));
        verb.generation = generation;
        EXPECT_EQ(ask_and_wait(*store_, verb).has_value(), generation == present);
      }
    }
    EXPECT_EQ(ask(AdoptRoutes{is_first_behind ? pay : charge}).generation, present);
    store_.reset();
  }
}

TEST_F(Shards, T01_a_shard_from_before_the_last_start_is_refused) {
  for (const Parts& older : {first_shard, second_shard}) {
    SCOPED_TRACE(older.front());
    fs::remove_all(path());
    open(3);
    complete_many(0, 30);
    store_.reset();
    keep(older);
    open(0);
    complete_many(30, 60);
    store_.reset();
    bring_back(older);
    EXPECT_NE(refusal(0).find("an older copy"), std::string::npos) << refusal(0);
    EXPECT_NE(refusal(1).find("an older copy"), std::string::npos) << refusal(1);
    EXPECT_FALSE(segments::check_store(path(), {}));
    EXPECT_FALSE(segments::back_up_store(path(), folder_.file("copy"), {}));
  }
}

// The first shard is from when it was the only one.
TEST_F(Shards, T01_a_folder_with_records_that_nobody_counts_is_not_deleted) {
  open(1);
  complete_many(0, 30);
  store_.reset();
  keep(first_shard);
  open(2);
  complete_many(30, 60);
  store_.reset();
  bring_back(first_shard);
  for (const std::uint32_t shards : {0U, 1U, 2U, 3U}) {
    EXPECT_NE(refusal(shards).find("has records in shards/01"), std::string::npos)
        << refusal(shards);
  }
  EXPECT_EQ(folders(), 2);
}

TEST_F(Shards, what_a_start_that_was_cut_off_left_is_cleared) {
  open(1);
  complete_many(0, 30);
  store_.reset();
  fs::create_directories(path("/shards/02.gone/index"));
  const std::string other = folder_.file("other");
  ASSERT_TRUE(open_log(other, test_settings(), {.host = clock.host()}));
  fs::rename(other, path("/shards/01"));
  open(0);
  EXPECT_EQ(folders(), 1);
  expect_answers(0, 30);
  fs::create_directories(path("/shards/01"));
  put_content(path("/shards/01/unfinished"), "");
  open(2);
  EXPECT_EQ(folders(), 2);
  expect_answers(0, 30);
}

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

TEST_F(Shards, a_backup_has_all_shards_and_a_restore_brings_them_back) {
  open(3);
  complete_many(0, 200);
  const Execute running = run(500);
  const std::string backup = folder_.file("backup");
  const auto copied = segments::back_up_store(path(), backup, {});
  ASSERT_TRUE(copied) << copied.error().why;
  EXPECT_EQ(copied->found, 0);
  EXPECT_EQ(copied->by_state[static_cast<std::size_t>(State::completed)], 200U);
  complete_many(200, 220);
  store_.reset();
  const auto restored = segments::restore_store({.from = backup, .path = path(), .keep_old = true});
  ASSERT_TRUE(restored) << restored.error().why;
  EXPECT_EQ(restored->unknown, 1U);
  open(0);
  EXPECT_EQ(folders(), 3);
  expect_answers(0, 200);
  EXPECT_TRUE(is<Unknown>(ask(reserve_of(numbered(500), 2))));
  EXPECT_GT(run(600).attempt.fence, running.attempt.fence + 1'000'000) << "the gap of a restore";
  store_.reset();
  expect_sound();
}

}  // namespace
}  // namespace idem::test
