#include "store/log/backup_store.hpp"
#include "store/log/check_store.hpp"
#include "store_conformance/embedded/killed_writer.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

/// The log store and kill -9: a process that writes is killed at any moment, again and again on one
/// store.
namespace idem::test {
namespace {

/// With one shard; and with one to four, another number at each start, so that a start moves what
/// the killed process left.
class LogKill : public KilledWriter, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { kind_ = GetParam(); }

  static void check(const std::string& path) {
    const auto report = segments::check_store(path, {});
    ASSERT_TRUE(report) << report.error().why;
    EXPECT_EQ(report->found, 0) << report->findings.front().where << ": "
                                << report->findings.front().what;
  }
};

TEST_P(LogKill, T16_kill_9_at_any_moment_loses_nothing_that_was_said) {
  const char* const wanted = std::getenv("IDEM_LOG_KILLS");
  const int kills = wanted != nullptr ? std::atoi(wanted) : 25;
  const char* const seeded = std::getenv("IDEM_SEED");
  const unsigned seed =
      seeded != nullptr ? static_cast<unsigned>(std::atoi(seeded)) : std::random_device()();
  fmt::print("IDEM_SEED={}\n", seed);
  std::mt19937 random(seed);
  const TempFolder folder;
  const std::string path = folder.file("idem.log");
  std::vector<Said> all;
  for (int i = 0; i < kills && !HasFatalFailure(); ++i) {
    const auto said = run_and_kill(path, static_cast<std::uint64_t>(i) * keys_of_a_life + 1,
                                   static_cast<int>(random() % 3'000) + 1);
    all.insert(all.end(), said.begin(), said.end());
    clock.advance(a_life);
    const auto store = open(path);
    ASSERT_NE(store, nullptr) << "kill " << i;
    // Each time what the last process said, now and then all of it.
    judge(*store, i % 8 == 7 || i + 1 == kills ? all : said);
  }
  if (kind_ == "sharded") check(path);
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path + "/records")) {
    files.insert(entry.path().filename().string());
  }
  EXPECT_LT(files.size(), std::stoul(*files.rbegin())) << "no file was deleted";
  EXPECT_FALSE(std::filesystem::exists(path + "/commits/00000001.commits"))
      << "no file was used again";
  fmt::print("kills={} said={}\n", kills, all.size());
}

// The process changes all of its files while they are read.
TEST_P(LogKill, a_look_beside_a_process_that_writes_is_whole) {
  segment_bytes_ = 16 * tiny;  // Else what a look opens is gone again, each time.
  const TempFolder folder;
  const std::string path = folder.file("idem.log");
  struct Copy {
    std::string path;
    std::size_t said_before;
  };
  std::vector<Copy> copies;
  std::atomic<bool> has_ended{false};
  std::atomic<int> checks{0};
  std::thread looks([&] {
    while (said_so_far_ == 0) std::this_thread::yield();
    while (!has_ended) {
      const auto report = segments::check_store(path, {});
      if (has_ended) break;  // The kill may have left what a start mends.
      ASSERT_TRUE(report) << report.error().why;
      ASSERT_EQ(report->found, 0) << report->findings.front().where << ": "
                                  << report->findings.front().what;
      if (++checks % 4 != 0) continue;
      const Copy copy{folder.file(fmt::format("copy{}", checks.load())), said_so_far_};
      const auto backup = segments::back_up_store(path, copy.path, {});
      if (has_ended) break;
      ASSERT_TRUE(backup) << backup.error().why;
      ASSERT_EQ(backup->found, 0);
      copies.push_back(copy);
    }
  });
  const auto said = run_and_kill(path, 2 * keys_of_a_life + 1, 150'000);
  has_ended = true;
  looks.join();
  clock.advance(3 * a_life);
  for (const auto& [copy, before] : copies) {
    const auto store = open(copy);
    ASSERT_NE(store, nullptr);
    judge(*store, {said.begin(), said.begin() + static_cast<std::ptrdiff_t>(before)});
  }
  EXPECT_GT(checks, 0);
  fmt::print("checks={} backups={} said={}\n", checks.load(), copies.size(), said.size());
}

INSTANTIATE_TEST_SUITE_P(Shards, LogKill, testing::Values("log", "sharded"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace idem::test
