#include "store_conformance/log/index_damage.hpp"
#include "store/log/backup_store.hpp"
#include "store/log/check_store.hpp"
#include "store/log/look.hpp"
#include "store/log/recover_store.hpp"
#include "store/log/reindex_store.hpp"

#include <cstdlib>
#include <set>

/// Damage to the index: it ends no process that serves, what is derived is made anew, and what is
/// nowhere else is named.
namespace idem::test {
namespace {

// Every file of the index, damaged at several places, zeroed, cut and gone: a start refuses and
// says what is damaged, or serves, and ends by no damage that it meets.
TEST_F(LogIndexDamage, S22_no_damage_to_the_index_ends_a_process_or_lets_a_key_run_again) {
  constexpr std::uint64_t completed = 30;
  const bool takes_all = std::getenv("IDEM_INDEX_DAMAGES") != nullptr;  // Else every other one.
  fill(completed);
  std::set<std::string> refusals;
  std::set<std::string> repairs;
  int number = 0;
  int cases = 0;
  int failed_while_serving = 0;
  for (const std::string& table : tables()) {
    const std::string whole = content_of(sound() + "/index/" + table);
    const std::size_t size = whole.size();
    ++number;
    for (const std::string kind : {"begin", "middle", "end", "zeroed", "cut", "gone"}) {
      if (++number % 2 == 0 && !takes_all) continue;
      SCOPED_TRACE(table + " " + kind);
      bring_back();
      const std::string file = path("/index/" + table);
      if (kind == "begin") flip(file, 3);
      if (kind == "middle") flip(file, size / 2);
      if (kind == "end") flip(file, size - 20);
      if (kind == "zeroed") put_content(file, std::string(size, '\0'));
      if (kind == "cut") put_content(file, whole.substr(0, size / 2));
      if (kind == "gone") fs::remove(file);
      ++cases;
      const auto judged = segments::identify_store(path(), test_settings(), LookDepth::whole);
      auto store = try_open();
      EXPECT_EQ(judged.has_value(), store.has_value()) << "the look says what the start says";
      const auto report = segments::check_store(path(), {});
      EXPECT_TRUE(store || !report || report->found > 0) << "nor does a check say less";
      if (!store) {
        EXPECT_NE(store.error().detail.find("is damaged"), std::string::npos);
        EXPECT_NE(store.error().detail.find("cannot be read"), std::string::npos)
            << store.error().detail;
        for (const char* const what :
             {"identity and settings", "evidence", "journals", "stored requests"}) {
          if (store.error().detail.find(what) != std::string::npos) refusals.insert(what);
        }
        continue;
      }
      if (!reindexed_.empty()) repairs.insert(reindexed_);
      store_ = std::move(*store);
      const int failed = use_everything();
      failed_while_serving += failed;
      expect_no_key_runs_again(completed);
      store_.reset();
      // What was met is known to the next start.
      auto again = try_open();
      if (!again) {
        EXPECT_NE(again.error().detail.find("cannot be read"), std::string::npos)
            << again.error().detail;
      } else {
        EXPECT_EQ(failed, 0) << "what failed is nowhere else";
        store_ = std::move(*again);
        EXPECT_EQ(use_everything(), 0);
        expect_no_key_runs_again(completed);
      }
    }
  }
  EXPECT_GE(cases, 8 * (takes_all ? 6 : 3));
  fmt::print("cases={}\n", cases);
  EXPECT_GT(failed_while_serving, 0);
  EXPECT_EQ(refusals.size(), 4U);
  EXPECT_EQ(repairs.size(), 4U);
}

// RocksDB itself opens the first sixteen alone when it starts, and each of them when it looks.
TEST_F(LogIndexDamage, S22_a_start_looks_at_the_end_of_each_of_many_files) {
  fill(5);
  for (std::uint64_t turn = 1; turn <= 3; ++turn) {
    open();
    must(a_complete(run(20'000 + turn)));
    must(AppendLine{"j", turn, "another line"});
    store_.reset();
  }
  fs::remove_all(sound());
  fs::copy(path(), sound(), fs::copy_options::recursive);
  const auto files = tables();
  ASSERT_GT(files.size(), 16U);
  int recoveries = 0;
  for (const std::string& table : files) {
    SCOPED_TRACE(table);
    bring_back();
    const std::string file = path("/index/" + table);
    const std::string whole = content_of(file);
    // The last is as if another file had its name.
    const auto place = std::ranges::find(files, table) - files.begin();
    if (place % 3 == 0) put_content(file, whole.substr(0, whole.size() - 20));
    if (place % 3 == 1) put_content(file, whole + std::string(20, 'x'));
    if (place % 3 == 2) put_content(file, "x" + whole);
    const auto judged = segments::identify_store(path(), test_settings(), LookDepth::whole);
    const auto store = try_open();
    ASSERT_EQ(judged.has_value(), store.has_value())
        << (store ? judged.error().why : store.error().detail);
    if (store) continue;
    EXPECT_NE(store.error().detail.find(table), std::string::npos) << store.error().detail;
    EXPECT_EQ(store.error().detail, judged.error().why);
    // As the sentence says.
    const std::string made = folder_.file("made");
    fs::remove_all(made);
    const bool can_recover = store.error().detail.contains("idem store recover");
    const auto recovered = segments::recover_store({.from = path(), .to = made});
    ASSERT_EQ(recovered.has_value(), can_recover) << (recovered ? "" : recovered.error().why);
    recoveries += can_recover ? 1 : 0;
    if (!can_recover) continue;
    EXPECT_EQ(recovered->notes.size(), 1U);
    fs::remove_all(path());
    fs::rename(made, path());
    open();
    expect_no_key_runs_again(5);
  }
  EXPECT_GT(recoveries, 0);
}

// A start does not read so far: the reaper meets it, and the others go on.
TEST_F(LogIndexDamage, S22_a_damaged_list_far_on_fails_the_reaper_alone_and_is_made_anew) {
  constexpr std::uint64_t completed = 700;
  fill(completed);
  // By far the largest are those of what is due. A cursor begins in each file, so not its
  // beginning.
  const auto size_of = [&](const std::string& table) {
    return fs::file_size(path("/index/" + table));
  };
  const std::string file = path("/index/" + std::ranges::max(tables(), {}, size_of));
  for (const std::size_t eighths : {5U, 6U, 4U}) {
    bring_back();
    flip(file, fs::file_size(file) / 8 * eighths);
    open();
    if (reindexed_.empty()) break;  // Else that lay in what a start reads.
  }
  EXPECT_EQ(reindexed_, "");
  expect_no_key_runs_again(completed);
  clock.advance(retention + 1h);
  std::size_t reaped = 0;
  std::optional<StoreError> error;
  for (int i = 0; i < 100 && !error; ++i) {
    const auto steps = try_ask(Reap{100});
    if (steps) reaped += steps->size();
    if (!steps) error = steps.error();
    if (steps && steps->empty()) break;
  }
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, StoreError::Code::damaged);
  EXPECT_NE(error->detail.find("the next start makes them anew"), std::string::npos)
      << error->detail;
  EXPECT_LT(reaped, completed);
  must(a_complete(run(20'000)));
  open();
  EXPECT_EQ(reindexed_, "lists of what is due");
  for (;;) {
    const auto steps = must(Reap{100});
    if (steps.empty()) break;
    reaped += steps.size();
  }
  EXPECT_GE(reaped, completed);
  store_.reset();
  const auto report = segments::check_store(path(), {});
  ASSERT_TRUE(report) << report.error().why;
  EXPECT_EQ(report->found, 0) << report->findings.front().where << ": "
                              << report->findings.front().what;
}

TEST_F(LogIndexDamage, a_reindex_makes_what_was_there) {
  constexpr std::uint64_t completed = 100;
  fill(completed);
  open();
  const auto before = must(Count{});
  const auto unknown = must(List{.state = State::unknown});
  store_.reset();
  const auto done = segments::reindex_store(path(), {});
  ASSERT_TRUE(done) << done.error().why;
  EXPECT_EQ(*done, completed + 3);
  const auto report = segments::check_store(path(), {});
  ASSERT_TRUE(report) << report.error().why;
  EXPECT_EQ(report->found, 0) << report->findings.front().where << ": "
                              << report->findings.front().what;
  open();
  EXPECT_EQ(must(Count{}).by_state, before.by_state);
  EXPECT_EQ(must(List{.state = State::unknown}).size(), unknown.size());
  // As many active keys as before: that of the accepted request does not count.
  Reserve verb = reserve_of(numbered(30'000));
  verb.scope = "acme";
  verb.quota = Quota{.active_keys = completed + 2};
  EXPECT_TRUE(is<QuotaExceeded>(must(verb)));
  verb.quota = Quota{.active_keys = completed + 3};
  EXPECT_TRUE(is<Execute>(must(verb)));
  EXPECT_FALSE(segments::reindex_store(path(), {})) << "a process has it";
}

// Killed wherever it is: frames of before name families that are gone by then.
TEST_F(LogIndexDamage, T16_a_store_that_was_killed_after_a_reindex_is_whole) {
  constexpr std::uint64_t completed = 30;
  fill(completed);
  ASSERT_TRUE(segments::reindex_store(path(), {}));
  open();
  must(a_complete(run(20'000)));
  const std::string left = folder_.file("left");
  fs::copy(path(), left, fs::copy_options::recursive);
  store_.reset();
  fs::remove_all(path());
  fs::rename(left, path());
  const auto report = segments::check_store(path(), {});
  ASSERT_TRUE(report) << report.error().why;
  EXPECT_EQ(report->found, 0) << report->findings.front().where << ": "
                              << report->findings.front().what;
  open();
  expect_no_key_runs_again(completed);
  EXPECT_EQ(outcome(20'000), "replay");
  const std::string backup = folder_.file("backup");
  const auto copied = segments::back_up_store(path(), backup, {});
  ASSERT_TRUE(copied) << copied.error().why;
  EXPECT_EQ(copied->found, 0);
}

}  // namespace
}  // namespace idem::test
