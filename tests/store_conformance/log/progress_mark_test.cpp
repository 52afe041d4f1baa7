#include "store/log/progress_mark.hpp"
#include "store/log/backup_store.hpp"
#include "store/log/check_store.hpp"
#include "store/log/commit_log.hpp"
#include "store/log/log_store.hpp"
#include "store/log/recover_store.hpp"
#include "store_conformance/log/runs.hpp"
#include "store_conformance/lost_medium.hpp"

/// The mark of the log's progress: a log that lost its end is refused, and a kill is not.
namespace idem::test {
namespace {

namespace fs = std::filesystem;
using segments::ProgressMark;

class LogProgress : public OnLostMedium {
 protected:
  std::string path(const char* part = "") const { return folder_.file("idem.store") + part; }
  std::string log_file() const { return path("/commits/00000001.commits"); }

  std::expected<std::unique_ptr<Store>, StoreError> try_open() {
    return open_log(
        path(), test_settings(),
        {.host = clock.host(),
         .mark_each = each_,
         .accepts_short_log = accepts_short_log_,
         .cut_off = [this](auto newest, auto stopped) { cut_off_.emplace(newest, stopped); }});
  }
  void open() {
    cut_off_.reset();
    auto store = try_open();
    ASSERT_TRUE(store) << store.error().detail;
    store_ = std::move(*store);
  }
  std::string refusal() {
    const auto store = try_open();
    return store ? "it was opened" : store.error().detail;
  }

  /// Of what is at the path.
  std::uint64_t last_commit() {
    segments::CommitLog log(path("/commits"), 1UL << 20U, background_);
    EXPECT_TRUE(log.look_at_format());
    EXPECT_TRUE(log.look());
    EXPECT_TRUE(log.replay([](const auto&) {}));
    return log.last_number();
  }
  ProgressMark::Value mark() {
    segments::CommitLog log(path("/commits"), 1UL << 20U, background_);
    EXPECT_TRUE(log.look_at_format());
    ProgressMark found(path(), Millis(0));
    const auto read = found.read(log.tag());
    EXPECT_TRUE(read) << read.error();
    return found.value();
  }
  void wait_for_mark() {
    const std::uint64_t last = last_commit();
    while (mark().commit < last) std::this_thread::yield();
  }
  /// As a kill would leave it now.
  void kill() {
    const std::string left = folder_.file("left");
    fs::remove_all(left);
    fs::copy(path(), left, fs::copy_options::recursive);
    store_.reset();
    fs::remove_all(path());
    fs::rename(left, path());
  }
  void expect_refused(const std::string& what) {
    EXPECT_NE(refusal().find(what), std::string::npos) << refusal();
    const auto report = segments::check_store(path(), {});
    ASSERT_FALSE(report) << "the check says the same";
    EXPECT_NE(report.error().why.find(what), std::string::npos) << report.error().why;
    EXPECT_FALSE(segments::back_up_store(path(), folder_.file("backup"), {}));
  }

  Millis each_{1};
  bool accepts_short_log_ = false;
  std::optional<std::pair<std::optional<StoreTime>, std::optional<StoreTime>>> cut_off_;
  segments::Background background_;
};

// The versions are not in their files yet, and index and table of ids have nothing: nothing but the
// mark knows of the end.
TEST_F(LogProgress, T01_a_log_that_ends_before_its_mark_is_refused_wherever_it_was_cut) {
  open();
  for (int number = 1; number <= 20; ++number) complete(number);
  wait_for_mark();
  kill();
  const std::string whole = content_of(log_file());
  constexpr std::size_t frame = 4096;
  ASSERT_GT(whole.size(), 30 * frame);
  std::size_t end = whole.find_last_not_of('\0');
  end -= end % frame;  // Where the last frame begins.
  for (const std::size_t at :
       {std::size_t{0}, frame, frame + 17, end / 2, end - frame, end, end + 1, end + 40}) {
    SCOPED_TRACE(at);
    put_content(log_file(), whole.substr(0, at));
    expect_refused("its log ends before its");
    std::string zeroed = whole;
    std::fill(zeroed.begin() + static_cast<std::ptrdiff_t>(at), zeroed.end(), '\0');
    put_content(log_file(), zeroed);
    expect_refused("its log ends before its");
    EXPECT_NE(refusal().find("was durable at"), std::string::npos) << refusal();
  }
  put_content(log_file(), whole);
  open();
  for (const int number : {1, 20}) EXPECT_EQ(outcome_of(number), "replay");
}

TEST_F(LogProgress, T01_a_log_of_an_earlier_moment_or_of_another_store_is_refused) {
  open();
  complete(1);
  const std::string earlier = content_of(log_file());
  for (int number = 2; number <= 9; ++number) complete(number);
  wait_for_mark();
  kill();
  put_content(log_file(), earlier);
  expect_refused("its log ends before its mark: with commit");
  const std::string other = folder_.file("other");
  ASSERT_TRUE(open_log(other, test_settings(), {.host = clock.host()}));
  fs::copy_file(other + "/commits/00000001.commits", log_file(),
                fs::copy_options::overwrite_existing);
  expect_refused("its log ends before its");
}

TEST_F(LogProgress, while_nothing_is_written_the_mark_stays_as_it_is) {
  open();
  complete(1);
  wait_for_mark();
  const std::string before = content_of(path("/mark"));
  for (int i = 0; i < 500; ++i) ASSERT_EQ(outcome_of(1), "replay");
  EXPECT_EQ(content_of(path("/mark")), before);
}

TEST_F(LogProgress, a_clean_stop_is_marked_and_a_kill_is_not) {
  each_ = Millis(std::chrono::hours(1));
  open();
  EXPECT_FALSE(cut_off_);
  complete(1);
  EXPECT_FALSE(mark().stopped_at);
  EXPECT_LT(mark().commit, last_commit());
  kill();
  EXPECT_LT(mark().commit, last_commit());
  open();
  ASSERT_TRUE(cut_off_);
  EXPECT_EQ(cut_off_->first, clock.now());
  EXPECT_FALSE(cut_off_->second);
  store_.reset();
  EXPECT_EQ(mark().commit, last_commit());
  const auto stopped_at = mark().stopped_at;
  EXPECT_TRUE(stopped_at);
  const auto report = segments::check_store(path(), {});
  ASSERT_TRUE(report) << report.error().why;
  EXPECT_EQ(report->newest_record, clock.now());
  EXPECT_EQ(report->last_clean_stop, stopped_at);
  open();
  EXPECT_FALSE(cut_off_);
  kill();
  open();
  ASSERT_TRUE(cut_off_);
  EXPECT_EQ(cut_off_->second, stopped_at);
}

TEST_F(LogProgress, T01_without_its_mark_a_store_is_refused) {
  open();
  complete(1);
  store_.reset();
  const std::string sound = content_of(path("/mark"));
  fs::remove(path("/mark"));
  expect_refused("/mark is missing");
  // How far the log went nobody can tell.
  const auto recovered = segments::recover_store({.from = path(), .to = folder_.file("made")});
  ASSERT_TRUE(recovered) << recovered.error().why;
  EXPECT_TRUE(recovered->lacks_keys);
  put_content(path("/mark"), std::string(sound.size(), '\0'));
  expect_refused("/mark is damaged");
  put_content(path("/mark"), "");
  expect_refused("/mark is damaged");
  const std::string other = folder_.file("other");
  ASSERT_TRUE(open_log(other, test_settings(), {.host = clock.host()}));
  put_content(path("/mark"), content_of(other + "/mark"));
  expect_refused("/mark is damaged");
  // A write that a crash cut: the slot before counts.
  for (const std::size_t slot : {0U, 4096U}) {
    put_content(path("/mark"), std::string(sound).replace(slot, 40, 40, 'x'));
    EXPECT_TRUE(segments::check_store(path(), {})) << slot;
  }
  put_content(path("/mark"), sound);
  open();
  EXPECT_EQ(outcome_of(1), "replay");
}

TEST_F(LogProgress, a_copy_has_a_mark_of_its_own) {
  open();
  for (int number = 1; number <= 5; ++number) complete(number);
  const std::string backup = folder_.file("backup");
  ASSERT_TRUE(segments::back_up_store(path(), backup, {}));
  store_.reset();
  const auto restored = segments::restore_store({.from = backup, .path = path(), .keep_old = true});
  ASSERT_TRUE(restored) << restored.error().why;
  EXPECT_EQ(mark().commit, last_commit());
  open();
  EXPECT_EQ(outcome_of(5), "replay");
  fs::resize_file(backup + "/commits/00000001.commits", 0);
  const auto cut = segments::check_store(backup, {});
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().why.find("its log ends before its"), std::string::npos) << cut.error().why;
}

TEST_F(LogProgress,
       S03_a_recovery_of_a_log_that_lost_its_end_says_from_when_on_keys_may_be_missing) {
  open();
  complete(1);
  const std::string earlier = content_of(log_file());
  const StoreTime before = clock.now();
  clock.advance(10s);
  for (int number = 2; number <= 9; ++number) complete(number);
  wait_for_mark();
  kill();
  put_content(log_file(), earlier);
  expect_refused("its log ends before its mark");
  const std::string made = folder_.file("made");
  const auto recovered = segments::recover_store({.from = path(), .to = made});
  ASSERT_TRUE(recovered) << recovered.error().why;
  EXPECT_TRUE(recovered->lacks_keys);
  ASSERT_TRUE(recovered->lacks_from);
  EXPECT_LE(*recovered->lacks_from, before);
  EXPECT_EQ(content_of(log_file()), earlier) << "the store itself stays as it is";
  EXPECT_EQ(recovered->made.copied_at, recovered->lacks_from);
  const RestoreOrder order{.from = made, .path = folder_.file("in place")};
  const auto restored = segments::restore_store(order);
  ASSERT_TRUE(restored) << restored.error().why;
  EXPECT_EQ(restored->from.copied_at, recovered->lacks_from);
  const auto again = segments::recover_store({.from = made, .to = folder_.file("again")});
  ASSERT_TRUE(again) << again.error().why;
  EXPECT_TRUE(again->lacks_keys);
  EXPECT_EQ(again->lacks_from, recovered->lacks_from);
  fs::rename(path(), folder_.file("damaged"));
  fs::rename(made, path());
  open();
  EXPECT_EQ(outcome_of(1), "replay");
}

// What a repair of the store does, once the loss is known.
TEST_F(LogProgress, an_end_that_is_lost_can_be_accepted) {
  open();
  complete(1);
  const std::string earlier = content_of(log_file());
  complete(2);
  wait_for_mark();
  kill();
  put_content(log_file(), earlier);
  expect_refused("its log ends before its mark");
  accepts_short_log_ = true;
  open();
  EXPECT_EQ(outcome_of(1), "replay");
  store_.reset();
  accepts_short_log_ = false;
  open();
  EXPECT_EQ(outcome_of(1), "replay");
}

}  // namespace
}  // namespace idem::test
