#include "store/log/commit_log.hpp"
#include "store/log/log_store.hpp"
#include "store/log/look.hpp"
#include "store_conformance/harness.hpp"

#include <fmt/format.h>

#include <fstream>
#include <set>

/// The log's files: what a start reads of them after a crash, and what it refuses.
namespace idem::test {
namespace {

namespace fs = std::filesystem;
using segments::CommitLog;

class CommitLogFiles : public testing::Test {
 protected:
  std::unique_ptr<CommitLog> open() {
    auto log = std::make_unique<CommitLog>(folder_.file("log"), file_bytes, background_);
    const auto opened = log->open();
    EXPECT_TRUE(opened) << opened.error();
    return log;
  }
  static void append(CommitLog& log, std::string_view versions, std::string_view rest = "i") {
    (void)log.begins_file();
    log.append(versions, rest);
  }
  /// The numbers and contents of all frames, or the error.
  static std::string replay(CommitLog& log) {
    std::string all;
    const auto done = log.replay([&](const CommitLog::Frame& frame) {
      all += fmt::format("{}:{}+{} ", frame.number, frame.versions, frame.rest);
    });
    return done ? all : "refused: " + done.error();
  }
  std::string replay() { return replay(*open()); }
  void write(const std::vector<std::string>& frames) {
    const auto log = open();
    (void)replay(*log);
    for (const std::string& frame : frames) append(*log, frame);
  }

  std::string file(int number) const {
    return folder_.file(fmt::format("log/{:08}.commits", number));
  }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }

  static constexpr std::uint64_t frame_bytes = 4096;  ///< Of a short one.
  std::uint64_t file_bytes = 5 * frame_bytes;
  TempFolder folder_;
  segments::Background background_;
};

TEST_F(CommitLogFiles, T16_frames_come_back_over_several_files) {
  const auto log = open();
  EXPECT_EQ(replay(*log), "");
  std::string all;
  for (int i = 1; i <= 20; ++i) {
    append(*log, fmt::format("version-{}", i), "rest");
    all += fmt::format("{}:version-{}+rest ", i, i);
  }
  EXPECT_TRUE(fs::exists(file(4)));
  EXPECT_EQ(replay(), all);
}

// A file that is used again still has its old frames, which must not come back.
TEST_F(CommitLogFiles, T16_a_file_that_no_start_needs_is_used_again) {
  const auto log = open();
  (void)replay(*log);
  for (int i = 1; i <= 40; ++i) {
    append(*log, fmt::format("version-{}", i), "rest");
    log->allow_reuse(i < 6 ? 0 : static_cast<std::uint64_t>(i - 5));
    const std::string now = replay();
    ASSERT_TRUE(now.ends_with(fmt::format("{}:version-{}+rest ", i, i))) << now;
    ASSERT_EQ(now.starts_with("1:"), fs::exists(file(1))) << now;
    // No frame that a start needs is missing.
    for (int kept = std::max(1, i - 4); kept <= i; ++kept) {
      ASSERT_NE((" " + now).find(fmt::format(" {}:version", kept)), std::string::npos) << now;
    }
  }
  EXPECT_FALSE(fs::exists(file(1)));
  std::size_t files = 0;
  for (const auto& one : fs::directory_iterator(folder_.file("log"))) files += one.exists() ? 1 : 0;
  EXPECT_LE(files, 4U);
}

// A file that is laid out for what comes next has old frames and maybe a name that the disk does
// not know yet: whichever of its names a start finds, it reads the same, and goes on.
TEST_F(CommitLogFiles, T16_the_next_file_is_laid_out_beforehand) {
  std::string all;
  int i = 0;
  const auto more = [&](CommitLog& log, int count) {
    for (const int end = i + count; i < end;) {
      append(log, fmt::format("version-{}", ++i));
      if (i > 5) all += fmt::format("{}:version-{}+i ", i, i);
    }
  };
  auto log = open();
  (void)replay(*log);
  more(*log, 9);
  EXPECT_EQ(log->quarters(), 3U);
  log->allow_reuse(5);
  log->prepare_next();
  log->prepare_next();
  background_.wait();
  EXPECT_FALSE(fs::exists(file(1)));
  EXPECT_EQ(replay(), all);
  fs::rename(file(3), file(1));  // As a disk that lost the new name.
  EXPECT_EQ(replay(),
            "1:version-1+i 2:version-2+i 3:version-3+i 4:version-4+i 5:version-5+i " + all);
  fs::rename(file(1), file(3));
  more(*log, 2);
  EXPECT_EQ(replay(), all) << "with a frame in it";
  EXPECT_EQ(fs::file_size(file(3)), fs::file_size(file(2)));
  log->allow_reuse(5);
  log->prepare_next();  // Nothing can be used again: it has one made.
  background_.wait();
  EXPECT_FALSE(fs::exists(file(4)));
  EXPECT_TRUE(fs::exists(folder_.file("log/spare")));
  log->prepare_next();
  background_.wait();
  EXPECT_TRUE(fs::exists(file(4)));
  log = open();
  EXPECT_EQ(replay(*log), all);
  more(*log, 7);
  EXPECT_EQ(replay(), all) << "behind a start";
}

// What is written to it then, no start would find.
TEST_F(CommitLogFiles, T01_a_file_that_is_laid_out_and_gone_is_missed_with_its_first_frame) {
  for (const bool is_replaced : {false, true}) {
    fs::remove_all(folder_.file("log"));
    const auto log = open();
    (void)replay(*log);
    while (!fs::exists(file(2))) append(*log, "early");
    EXPECT_FALSE(log->wants_next());
    while (log->quarters() < 3) append(*log, "early");
    EXPECT_TRUE(log->wants_next());
    log->allow_reuse(log->last_number() - 1);
    log->prepare_next();
    background_.wait();
    ASSERT_TRUE(fs::exists(file(3)));
    EXPECT_FALSE(log->wants_next());
    fs::rename(file(3), folder_.file("elsewhere"));
    if (is_replaced) put(file(3), std::string(file_bytes, '\0'));
    while (log->quarters() < 4) append(*log, "old");
    EXPECT_EQ(log->what_is_lost(), "");
    append(*log, "new");
    EXPECT_NE(log->what_is_lost(), "") << is_replaced;
    background_.wait();
  }
}

TEST_F(CommitLogFiles, T16_a_file_that_is_laid_out_does_not_hide_one_that_is_missing) {
  write({std::string(file_bytes, 'a'), std::string(file_bytes, 'b'), "c"});
  fs::rename(file(1), file(4));
  EXPECT_TRUE(replay().starts_with("2:")) << replay();
  fs::rename(file(3), folder_.file("elsewhere"));
  EXPECT_TRUE(replay().starts_with("refused: ")) << replay();
}

// However far the last write came, the frame before is the end, and the log goes on behind it.
TEST_F(CommitLogFiles, T16_a_frame_that_a_crash_cut_is_the_end) {
  write({"one", "two"});
  const std::string two = content(file(1));
  const std::size_t begin = two.find("two") - 32;
  const std::size_t end = begin + 32 + 4;
  for (std::size_t at = begin; at < end; ++at) {
    std::string cut = two;
    std::fill(cut.begin() + static_cast<std::ptrdiff_t>(at), cut.end(), '\0');
    if (cut == two) continue;  // The rest of the frame is zeros.
    put(file(1), cut);
    ASSERT_EQ(replay(), "1:one+i ") << "cut at " << at;
    put(file(1), cut.substr(0, at));
    ASSERT_EQ(replay(), "1:one+i ") << "ends at " << at;
  }
  write({"three"});
  EXPECT_EQ(replay(), "1:one+i 2:three+i ");
}

TEST_F(CommitLogFiles, T16_a_damaged_byte_before_the_end_is_refused) {
  write({"one", "two", "three"});
  const std::string whole = content(file(1));
  const std::size_t third = whole.find("three") - 32;
  for (std::size_t at = 0; at < third; ++at) {
    // What fills a frame up, and a number that means nothing.
    const std::size_t in_frame = at % frame_bytes;
    if (in_frame >= 36 || (in_frame >= 12 && in_frame < 16)) continue;
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    put(file(1), damaged);
    ASSERT_TRUE(replay().starts_with("refused: ")) << "byte " << at << ": " << replay();
  }
}

// Whether the oldest ones are missing, the index knows (below).
TEST_F(CommitLogFiles, T16_a_missing_file_is_refused) {
  write({std::string(file_bytes, 'a'), std::string(file_bytes, 'b'), std::string(file_bytes, 'c')});
  ASSERT_TRUE(fs::exists(file(3)));
  fs::rename(file(2), folder_.file("elsewhere"));
  EXPECT_TRUE(replay().starts_with("refused: ")) << replay();
}

// The next file is made in the background once a log is in use, and begins as soon as it is there.
TEST_F(CommitLogFiles, T16_the_next_file_is_made_beforehand) {
  file_bytes = 8UL << 20U;
  const std::string spare = folder_.file("log/spare");
  std::uint32_t frames = 0;
  const auto log = open();
  (void)replay(*log);
  while (frames * frame_bytes <= 1UL << 20U) append(*log, fmt::format("version-{}", ++frames));
  background_.wait();
  EXPECT_TRUE(fs::exists(spare));
  EXPECT_FALSE(fs::exists(file(2)));
  append(*log, fmt::format("version-{}", ++frames));
  EXPECT_FALSE(fs::exists(spare));
  EXPECT_GE(fs::file_size(file(2)), file_bytes);
  background_.wait();
  const std::string all = replay();
  EXPECT_TRUE(all.starts_with("1:version-1+i 2:version-2+i "));
  EXPECT_TRUE(all.ends_with(fmt::format("{}:version-{}+i ", frames, frames)));
}

TEST_F(CommitLogFiles, T16_a_next_file_that_a_crash_left_unfinished_is_not_used) {
  file_bytes = 8UL << 20U;
  write({"one"});
  put(folder_.file("log/spare.part"), "half of it");
  put(folder_.file("log/spare"), "of other settings");
  EXPECT_EQ(replay(), "1:one+i ");
  EXPECT_FALSE(fs::exists(folder_.file("log/spare.part")));
  EXPECT_FALSE(fs::exists(folder_.file("log/spare")));
}

// A client's body may be a frame byte for byte, and a file that is used again keeps it. It is none
// in this log, because it lacks the log's secret.
TEST_F(CommitLogFiles, T16_a_frame_in_a_clients_body_is_none) {
  const auto page_of_a_log = [&](const std::string& folder) {
    CommitLog log(folder_.file(folder), file_bytes, background_);
    EXPECT_TRUE(log.open());
    (void)replay(log);
    append(log, "one");
    append(log, "two");
    return content(folder_.file(folder + "/00000001.commits")).substr(frame_bytes, frame_bytes);
  };
  const auto left_by_a_frame_with = [&](const std::string& page) {
    CommitLog log(folder_.file("log"), file_bytes, background_);
    EXPECT_TRUE(log.open());
    (void)replay(log);
    // The page lies at the beginning of one of the file's.
    append(log, std::string(frame_bytes - 32, 'x') + page);
    const std::string whole = content(file(1));
    put(file(1), std::string(frame_bytes, '\0') + whole.substr(frame_bytes));
    const std::string found = replay();
    put(file(1), "");
    return found;
  };
  EXPECT_EQ(left_by_a_frame_with(page_of_a_log("another")), "");
  EXPECT_TRUE(left_by_a_frame_with(page_of_a_log("log")).starts_with("refused: "));
}

TEST_F(CommitLogFiles, T16_a_log_without_its_format_or_of_a_newer_one_is_refused) {
  write({"one"});
  const std::string format = folder_.file("log/format");
  const std::string whole = content(format);
  const auto why = [&] {
    CommitLog log(folder_.file("log"), file_bytes, background_);
    const auto opened = log.open();
    return opened ? "opened" : opened.error();
  };
  fs::remove(format);
  EXPECT_NE(why().find("is missing"), std::string::npos) << why();
  put(format, whole.substr(0, 20));
  EXPECT_NE(why().find("is damaged"), std::string::npos) << why();
  put(format, whole);
  EXPECT_EQ(replay(), "1:one+i ");
}

/// The parts of a store that do not belong together.
class LogParts : public testing::Test {
 protected:
  std::string path(const char* part = "") const { return folder_.file("idem.log") + part; }
  std::expected<std::unique_ptr<Store>, StoreError> open() {
    return open_log(path(), test_settings(), {.host = clock.host()});
  }
  void complete(int number) {
    const auto store = open();
    ASSERT_TRUE(store) << store.error().detail;
    Reserve verb = a_reserve(number);
    verb.generation = 1;
    const auto outcome = ask_and_wait(**store, verb);
    ASSERT_TRUE(outcome && is<Execute>(*outcome));
    ASSERT_TRUE(ask_and_wait(**store, a_complete(std::get<Execute>(*outcome))));
  }
  std::string why_refused() {
    const auto store = open();
    return store ? "it was opened" : store.error().detail;
  }

  TestClock clock;
  TempFolder folder_;
};

TEST_F(LogParts, T01_a_store_without_its_log_is_refused) {
  complete(1);
  fs::remove_all(path("/commits"));
  EXPECT_NE(why_refused().find("its log is missing"), std::string::npos) << why_refused();
  EXPECT_FALSE(fs::exists(path("/commits"))) << "nothing is made";
}

TEST_F(LogParts, T01_an_older_log_is_refused) {
  complete(1);
  fs::copy(path("/commits"), path("/older"));
  complete(2);
  fs::remove_all(path("/commits"));
  fs::rename(path("/older"), path("/commits"));
  EXPECT_NE(why_refused().find("its log ends before its index"), std::string::npos)
      << why_refused();
}

// All of it is in the log alone, as the process was killed: nothing else knows how far it went.
TEST_F(LogParts, T01_a_log_that_ends_before_the_versions_is_refused) {
  const TempFolder copy;
  {
    auto store = open();
    ASSERT_TRUE(store) << store.error().detail;
    for (int number = 1; number <= 40; ++number) {
      Reserve verb = a_reserve(number);
      verb.generation = 1;
      const auto outcome = ask_and_wait(**store, verb);
      ASSERT_TRUE(outcome && is<Execute>(*outcome));
      ASSERT_TRUE(ask_and_wait(
          **store, a_complete(std::get<Execute>(*outcome), answer(201, std::string(20'000, 'x')))));
    }
    fs::copy(path(), copy.file("idem.log"), fs::copy_options::recursive);
  }
  fs::remove_all(path());
  fs::rename(copy.file("idem.log"), path());
  const std::string log = path("/commits/00000001.commits");
  fs::resize_file(log, 200'000);
  EXPECT_NE(why_refused().find("its log ends before its versions"), std::string::npos)
      << why_refused();
}

// Also where the log has all that the index had: a look could not see it so without making it.
TEST_F(LogParts, T01_an_index_that_is_gone_is_refused_by_a_start_and_a_look) {
  complete(1);
  fs::rename(path("/index"), path("/away"));
  EXPECT_NE(why_refused().find("its index is missing"), std::string::npos) << why_refused();
  EXPECT_FALSE(fs::exists(path("/index"))) << "nothing is made";
  const auto looked = segments::identify_store(path(), test_settings(), LookDepth::whole);
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().why, why_refused());
  fs::rename(path("/away"), path("/index"));
  EXPECT_TRUE(open());
}

// Also at the second start: the first one must not give the index what is left.
TEST_F(LogParts, T01_an_index_that_is_gone_is_not_made_of_a_part_of_the_log) {
  {
    auto store = open_log(path(), test_settings(),
                          {.host = clock.host(), .sizes = {.segment_bytes = 8'192}});
    ASSERT_TRUE(store) << store.error().detail;
    for (int number = 1; number < 40; ++number) {
      Reserve verb = a_reserve(number);
      verb.generation = 1;
      ASSERT_TRUE(ask_and_wait(**store, verb));
    }
  }
  fs::remove_all(path("/index"));
  fs::remove(path("/commits/00000001.commits"));
  for (int start = 1; start <= 2; ++start) {
    EXPECT_NE(why_refused().find("its index is missing"), std::string::npos)
        << "start " << start << ": " << why_refused();
  }
}

TEST_F(LogParts, T01_versions_that_are_gone_are_damage_or_written_again) {
  complete(1);
  fs::remove_all(path("/records"));
  const auto store = open();
  ASSERT_TRUE(store) << store.error().detail;
  Reserve verb = a_reserve(1, 2);
  verb.generation = 1;
  const auto outcome = ask_and_wait(**store, verb);
  EXPECT_TRUE(outcome && is<Replay>(*outcome)) << "the log has it still";
}

TEST_F(LogParts, T01_a_store_that_was_named_by_its_id_is_opened) {
  complete(1);
  LogOptions how{.host = clock.host()};
  how.opened = [&](const OpenedStore& store) { how.which.id = store.id; };
  {
    ASSERT_TRUE(open_log(path(), test_settings(), how));
  }
  ASSERT_FALSE(how.which.id.empty());
  const auto store = open_log(path(), test_settings(), how);
  EXPECT_TRUE(store) << store.error().detail;
}

TEST_F(LogParts, T01_one_process_owns_it) {
  const auto store = open();
  ASSERT_TRUE(store);
  EXPECT_NE(why_refused().find("another process owns"), std::string::npos) << why_refused();
}

TEST(NumberedFiles, T01_of_a_folder_that_was_moved_they_touch_nothing_at_its_path) {
  const TempFolder folder;
  const std::string path = folder.file("files");
  const std::string moved = folder.file("moved");
  segments::NumberedFiles files(path, ".x");
  ASSERT_TRUE(files.open());
  segments::Background background;
  segments::SpareFile spare(files, 4096, background);
  for (const std::uint32_t number : {1U, 2U}) files.make(number);
  const auto names = [](const std::string& in) {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(in)) all.insert(entry.path().filename());
    return all;
  };
  const auto there = names(path);
  fs::rename(path, moved);
  fs::create_directory(path);
  for (const std::string& name : there) std::ofstream(path + "/" + name) << "another store's";

  files.rename(1, 3);
  files.remove(2);
  files.make(4);
  spare.prepare();
  background.wait();
  ASSERT_TRUE(spare.is_ready());
  files.adopt(spare.take(), 5);
  EXPECT_EQ(names(path), there);
  EXPECT_EQ(names(moved), (std::set<std::string>{"00000003.x", "00000004.x", "00000005.x"}));
}

}  // namespace
}  // namespace idem::test
