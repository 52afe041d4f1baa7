#include "store/log/due_lists.hpp"
#include "store/log/log_store.hpp"
#include "store_conformance/harness.hpp"

#include <atomic>
#include <fstream>
#include <set>

/// Records that become due together: a list for each commit, and one read for many of them.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

/// So small that the log does not keep all commits.
constexpr LogSizes short_log{
    .segment_bytes = 64UL * 1024, .cache_bytes = 1UL << 20U, .buffer_bytes = 128UL * 1024};

class LogDueLists : public testing::Test {
 protected:
  static constexpr int records = 300;

  void open() {
    store_.reset();
    auto opened = open_log(folder_.file("idem.log"), test_settings(),
                           {.host = clock.host(), .sizes = short_log});
    ASSERT_TRUE(opened) << opened.error().detail;
    store_ = std::move(*opened);
  }

  /// Asks for all of them before the store answers the first, so that commits have many.
  template <class Verb>
  std::vector<typename Verb::Reply> ask_together(std::vector<Verb> verbs) {
    std::vector<std::optional<typename Verb::Reply>> replies(verbs.size());
    std::atomic<std::size_t> left = verbs.size();
    for (std::size_t i = 0; i < verbs.size(); ++i) {
      ask(*store_, std::move(verbs[i]), [&, i](auto reply) {
        if (reply) replies[i] = std::move(*reply);
        if (--left == 0) left.notify_one();
      });
    }
    for (std::size_t now = left; now > 0; now = left) left.wait(now);
    std::vector<typename Verb::Reply> all;
    for (auto& reply : replies) {
      if (reply) all.push_back(std::move(*reply));
    }
    EXPECT_EQ(all.size(), verbs.size());
    return all;
  }

  void complete_all(int from, Millis retention) {
    std::vector<Reserve> reserves;
    for (int number = from; number < from + records; ++number) {
      reserves.push_back(a_reserve(1));
      reserves.back().id.bytes[0] = static_cast<std::uint8_t>(number);
      reserves.back().id.bytes[1] = static_cast<std::uint8_t>(number >> 8U);
      reserves.back().generation = store_->identity().generation;
      reserves.back().retention = reserves.back().tombstone = retention;
    }
    std::vector<Complete> completes;
    for (const auto& outcome : ask_together(std::move(reserves))) {
      ASSERT_TRUE(is<Execute>(outcome));
      completes.push_back(a_complete(std::get<Execute>(outcome)));
      completes.back().response.body = std::string(500, 'x');
    }
    (void)ask_together(std::move(completes));
  }

  std::vector<std::uint32_t> log_files() const {
    std::vector<std::uint32_t> numbers;
    for (const auto& file : fs::directory_iterator(folder_.file("idem.log") + "/commits")) {
      const std::string name = file.path().stem().string();
      if (std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; })) {
        numbers.push_back(static_cast<std::uint32_t>(std::stoul(name)));
      }
    }
    return numbers;
  }
  std::uint32_t newest_log_file() const { return std::ranges::max(log_files()); }
  std::uint32_t oldest_log_file() const { return std::ranges::min(log_files()); }

  /// The steps of reaping all that is due, so many at a time.
  std::vector<LifecycleStep> reap_by(std::size_t limit) {
    std::vector<LifecycleStep> steps;
    for (;;) {
      const auto reaped = ask_and_wait(*store_, Reap{limit});
      EXPECT_TRUE(reaped);
      if (!reaped || reaped->empty()) return steps;
      EXPECT_LE(reaped->size(), limit);
      steps.insert(steps.end(), reaped->begin(), reaped->end());
    }
  }
  static std::size_t ids_in(const std::vector<LifecycleStep>& steps) {
    std::set<RecordId> ids;
    for (const LifecycleStep& step : steps) ids.insert(step.id);
    return ids.size();
  }

  TestClock clock;
  TempFolder folder_;
  std::unique_ptr<Store> store_;
};

TEST_F(LogDueLists, each_record_of_a_list_is_reaped_once_in_slices_and_across_a_start) {
  open();
  complete_all(0, 1h);
  clock.advance(90min);
  const auto first = ask_and_wait(*store_, Reap{7});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->size(), 7U);
  for (const LifecycleStep& step : *first) {
    const auto found = ask_and_wait(*store_, Find{step.id});
    ASSERT_TRUE(found && *found);
    EXPECT_EQ((*found)->state, State::expired) << "as it was before the slice";
  }
  open();
  const auto rest = reap_by(7);
  EXPECT_EQ(rest.size(), records - 7U);
  EXPECT_EQ(ids_in(rest), records - 7U);
  for (const LifecycleStep& step : rest) {
    EXPECT_EQ(step.from, State::completed);
    EXPECT_EQ(step.to, State::expired);
    EXPECT_FALSE(step.damaged);
  }
  clock.advance(90min);
  const auto tombstones = reap_by(7);
  EXPECT_EQ(tombstones.size(), std::size_t{records});
  EXPECT_EQ(ids_in(tombstones), std::size_t{records});
  for (const LifecycleStep& step : tombstones) EXPECT_EQ(step.to, std::nullopt);
}

// What a slice found of a record does not count any more once the record runs again.
TEST_F(LogDueLists, T01_a_key_of_a_reaped_tombstone_runs_once_more_and_is_replayed) {
  open();
  complete_all(0, 1h);
  clock.advance(90min);
  (void)reap_by(50);
  clock.advance(90min);
  const auto slice = ask_and_wait(*store_, Reap{50});
  ASSERT_TRUE(slice);
  ASSERT_EQ(slice->size(), 50U);
  for (const LifecycleStep& step : *slice) {
    Reserve again = a_reserve(1, 2);
    again.id = step.id;
    again.generation = store_->identity().generation;
    const auto run = ask_and_wait(*store_, again);
    ASSERT_TRUE(run && is<Execute>(*run));
    ASSERT_TRUE(ask_and_wait(*store_, a_complete(std::get<Execute>(*run))));
    again = a_reserve(1, 3);
    again.id = step.id;
    again.generation = store_->identity().generation;
    const auto replay = ask_and_wait(*store_, again);
    ASSERT_TRUE(replay) << replay.error().detail;
    ASSERT_TRUE(is<Replay>(*replay)) << describe(*replay);
  }
}

TEST_F(LogDueLists, T01_damage_to_some_of_them_is_said_of_each_and_stops_no_other) {
  open();
  complete_all(0, 1h);
  // Until the log does not have them any more, so that the start cannot repair them.
  const std::uint32_t last = newest_log_file();
  for (int more = 1; oldest_log_file() <= last; ++more) {
    ASSERT_LT(more, 200);
    complete_all(more * records, 48h);
  }
  store_.reset();
  const std::string file = folder_.file("idem.log") + "/records/00000001.records";
  const auto size = fs::file_size(file);
  {
    std::fstream out(file, std::ios::in | std::ios::out | std::ios::binary);
    out.seekp(static_cast<std::streamoff>(size / 2));
    out << std::string(1'000, '\xff');
  }
  // The file ends early: the read of many fails, and each is read alone.
  fs::resize_file(file, size - size / 10);
  open();
  clock.advance(90min);
  const auto steps = reap_by(50);
  EXPECT_EQ(steps.size(), std::size_t{records});
  EXPECT_EQ(ids_in(steps), std::size_t{records});
  const auto damaged = std::ranges::count_if(steps, &LifecycleStep::damaged);
  EXPECT_GE(damaged, 2) << size;
  EXPECT_LE(damaged, records / 2) << size;
}

// A copy of an overdue version gets a list in front of the others. What was found out about those
// would cost a read an entry to find out again, in one transaction.
TEST_F(LogDueLists, a_list_that_comes_in_front_makes_no_slice_look_again_at_what_is_gone) {
  segments::RunningSection running;
  auto db = segments::Database::open({.path = folder_.file("lists"), .sizes = short_log}, running);
  ASSERT_TRUE(db) << db.error().detail;
  segments::DueLists lists(**db);
  std::set<RecordId> present;
  std::size_t looks = 0;
  const auto is_present = [&](const segments::DueLists::Entry& entry) {
    ++looks;
    return present.contains(entry.id);
  };
  const auto add = [&](int due, int first, int count) {
    for (int number = first; number < first + count; ++number) {
      RecordId id;
      id.bytes[0] = static_cast<std::uint8_t>(number);
      id.bytes[1] = static_cast<std::uint8_t>(number >> 8U);
      present.insert(id);
      lists.add(StoreTime(Millis(due)), {id, number});
    }
    lists.flush(is_present);
    (*db)->commit();
  };
  constexpr std::size_t slice = 10;
  const auto reap = [&] {
    looks = 0;
    const auto ids = lists.due(StoreTime(Millis(100)), slice, is_present);
    for (const RecordId& id : ids) present.erase(id);
    (*db)->commit();
    EXPECT_LE(looks, 3 * slice) << present.size() << " are left";
    return ids.size();
  };
  add(10, 0, 500);
  for (int i = 0; i < 30; ++i) ASSERT_EQ(reap(), slice);
  add(5, 600, 15);
  for (int i = 0; i < 21; ++i) ASSERT_EQ(reap(), slice);
  EXPECT_EQ(reap(), 5U);
  EXPECT_EQ(reap(), 0U);
  EXPECT_TRUE(present.empty());
}

}  // namespace
}  // namespace idem::test
