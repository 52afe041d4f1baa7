#include "store/log/backup_store.hpp"
#include "store/log/check_store.hpp"
#include "store/log/log_store.hpp"
#include "store_conformance/harness.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <thread>

/// The log store and kill -9: a process that writes is killed at any moment, again and again on one
/// store whose files are so small that they begin, end, are indexed and deleted all the time.
namespace idem::test {
namespace {

LogSizes sizes_of(std::uint64_t segment_bytes) {
  return {.segment_bytes = segment_bytes,
          .cache_bytes = 1UL << 20U,
          .buffer_bytes = static_cast<std::size_t>(2 * segment_bytes)};
}
constexpr std::uint64_t tiny = 64UL * 1024;
constexpr int callers = 16;
/// By the test's clock.
constexpr Millis a_life = 5s;
constexpr std::uint64_t keys_of_a_life = 1'000'000;
constexpr int said_on = 3;  ///< The file descriptor.

RecordId wide_key(std::uint64_t number) {
  RecordId id;
  std::uint64_t mixed = number * 0x9e3779b97f4a7c15U;
  mixed ^= mixed >> 29U;
  std::memcpy(id.bytes.data(), &mixed, sizeof mixed);
  std::memcpy(id.bytes.data() + sizeof mixed, &number, sizeof number);
  return id;
}

/// Runs of records expire at once, and so leave files that nothing is in any more; of other runs
/// most do, and leave files that are copied together.
bool is_brief(std::uint64_t number) {
  return number / 400 % 2 == 0 || (number / 800 % 2 == 0 && number % 4 != 0);
}

Reserve reserve_of(std::uint64_t number, int token_number) {
  Reserve verb = a_reserve(1, token_number);
  verb.id = wide_key(number);
  verb.generation = 1;
  if (is_brief(number)) verb.retention = verb.tombstone = Millis(1);
  return verb;
}

std::string body_of(std::uint64_t number) {
  return fmt::format("{:0>{}}", number, 1 + number * 37 % 900);
}

/// What the killed process said: 'r' once a reserve was granted, 'c' once a complete was done.
struct Said {
  char what;
  std::uint64_t number;
};

class LogKill : public testing::Test {
 protected:
  std::unique_ptr<Store> open(const std::string& path) {
    auto store =
        open_log(path, test_settings(), {.host = clock.host(), .sizes = sizes_of(segment_bytes_)});
    EXPECT_TRUE(store) << store.error().detail;
    return store ? std::move(*store) : nullptr;
  }

  /// In a process of its own: pairs from `first` on, until it is killed.
  [[noreturn]] void write_on(const std::string& path, std::uint64_t first, int to) {
    auto store = open(path);
    if (!store) ::_exit(1);
    std::atomic<std::uint64_t> next{first};
    const auto say = [to](char what, std::uint64_t number) {
      const Said said{what, number};
      if (::write(to, &said, sizeof said) != sizeof said) ::_exit(1);
    };
    std::function<void()> pair = [&] {
      const std::uint64_t number = next.fetch_add(1);
      ask(*store, reserve_of(number, 1), [&, number](auto outcome) {
        if (!outcome || !is<Execute>(*outcome)) ::_exit(1);
        say('r', number);
        // Some stay running, so that a start has to end them.
        if (number % 97 == 0) return pair();
        ask(*store, a_complete(std::get<Execute>(*outcome), answer(201, body_of(number))),
            [&, number](auto reply) {
              if (!reply || reply->verdict != Verdict::done) ::_exit(1);
              say('c', number);
              pair();
            });
      });
    };
    for (int i = 0; i < callers; ++i) pair();
    for (int i = 0;; ++i) {
      // The clock is each process's own: the next one's must be ahead of this one's.
      if (i < a_life / Millis(1) - 1) clock.advance(Millis(1));
      (void)ask_and_wait(*store, Sweep{64});
      (void)ask_and_wait(*store, Reap{64});
    }
  }

  std::vector<Said> run_and_kill(const std::string& path, std::uint64_t first, int said_before) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    // A program anew: RocksDB's threads do not survive a fork.
    const std::string order = fmt::format("{} {} {}", segment_bytes_, first, path);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], said_on);
      ::setenv("IDEM_LOG_WRITER", order.c_str(), 1);
      ::execl("/proc/self/exe", "writer", "--gtest_filter=LogKill.DISABLED_writer",
              "--gtest_also_run_disabled_tests", nullptr);
      ::_exit(1);
    }
    ::close(ends[1]);
    std::vector<Said> all;
    Said said{};
    bool is_killed = false;
    while (::read(ends[0], &said, sizeof said) == sizeof said) {
      all.push_back(said);
      said_so_far_ = all.size();
      if (!is_killed && static_cast<int>(all.size()) >= said_before) {
        ::kill(child, SIGKILL);
        is_killed = true;
      }
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
    return all;
  }

  /// What was said must be so, and no key may run again.
  void judge(Store& store, const std::vector<Said>& all) {
    std::map<std::uint64_t, char> last;
    for (const Said& said : all) last[said.number] = said.what;
    for (const auto& [number, what] : last) {
      if (is_brief(number)) continue;  // Perhaps reaped by now.
      Reserve verb = reserve_of(number, 2);
      const auto outcome = ask_and_wait(store, verb);
      ASSERT_TRUE(outcome) << outcome.error().detail;
      ASSERT_FALSE(is<Execute>(*outcome)) << number << " runs again after '" << what << "'";
      if (what != 'c') continue;
      ASSERT_TRUE(is<Replay>(*outcome)) << number << ": " << describe(*outcome);
      EXPECT_EQ(std::get<Replay>(*outcome).response.body, body_of(number));
    }
  }

  TestClock clock;
  std::uint64_t segment_bytes_ = tiny;
  std::atomic<std::size_t> said_so_far_{0};
};

/// What the processes that are killed run.
TEST_F(LogKill, DISABLED_writer) {
  const char* const order = std::getenv("IDEM_LOG_WRITER");
  if (order == nullptr) GTEST_SKIP() << "it is a part of the next test";
  char* rest = nullptr;
  segment_bytes_ = std::strtoull(order, &rest, 10);
  const std::uint64_t first = std::strtoull(rest, &rest, 10);
  // Its clock begins where the one of the test stands.
  clock.advance(a_life * static_cast<int>(first / keys_of_a_life));
  write_on(rest + 1, first, said_on);
}

TEST_F(LogKill, T16_kill_9_at_any_moment_loses_nothing_that_was_said) {
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
  EXPECT_FALSE(std::filesystem::exists(path + "/records/00000001.records"))
      << "no file was deleted";
  EXPECT_FALSE(std::filesystem::exists(path + "/commits/00000001.commits"))
      << "no file was used again";
  fmt::print("kills={} said={}\n", kills, all.size());
}

// The process changes all of its files while they are read.
TEST_F(LogKill, a_look_beside_a_process_that_writes_is_whole) {
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
  const auto said = run_and_kill(path, 1, 60'000);
  has_ended = true;
  looks.join();
  clock.advance(a_life);
  for (const auto& [copy, before] : copies) {
    const auto store = open(copy);
    ASSERT_NE(store, nullptr);
    judge(*store, {said.begin(), said.begin() + static_cast<std::ptrdiff_t>(before)});
  }
  EXPECT_GT(checks, 0);
  fmt::print("checks={} backups={} said={}\n", checks.load(), copies.size(), said.size());
}

}  // namespace
}  // namespace idem::test
