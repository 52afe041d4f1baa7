#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/harness.hpp"
#include "store_conformance/sqlite/failing_vfs.hpp"
#include "support/process.hpp"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <random>
#include <sstream>

/// The embedded store when its process or its disk fails. The children below are this very program,
/// started again for one disabled test.
namespace idem::test {
namespace {

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// One write(2) per line: the parent counts each line it has read as reported.
void say(const std::string& line) {
  const std::string text = line + "\n";
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) std::abort();
}

std::unique_ptr<Process> child(const std::string& name, std::vector<std::string> environment) {
  ProcessOptions options;
  options.program = std::filesystem::read_symlink("/proc/self/exe");
  options.arguments = {"--gtest_also_run_disabled_tests", "--gtest_filter=Child.DISABLED_" + name};
  options.environment = std::move(environment);
  return std::make_unique<Process>(options);
}

RecordId wide_key(std::uint32_t number) {
  RecordId id;
  std::mt19937 random(number);
  for (auto& byte : id.bytes) byte = static_cast<std::uint8_t>(random());
  return id;
}

Reserve wide_reserve(std::uint32_t number, const Store& store) {
  Reserve verb = a_reserve(1);
  verb.id = wide_key(number);
  verb.generation = store.identity().generation;
  return verb;
}

std::string body_of(std::uint32_t number) {
  return fmt::format("answer {} ", number) + std::string(number % 3'000, 'z');
}

// ---- the children ----

TEST(Child, DISABLED_holds_the_file) {
  const auto store = open_sqlite(setting("IDEM_CHILD_STORE"), test_settings());
  if (!store) return say("refused: " + store.error().detail);
  say("holding");
  pause();
}

/// Many chains that reserve and complete without end, and tell of each answer.
class Hammer {
 public:
  explicit Hammer(Store& store, std::uint32_t first) : store_(store), next_(first) {}

  void reserve() {
    const std::uint32_t number = next_++;
    ask(store_, wide_reserve(number, store_), [this, number](const auto& outcome) {
      const auto& won = std::get<Execute>(*outcome);
      say(fmt::format("reserved {} {}", number, won.attempt.fence));
      Complete verb = a_complete(won, answer(201, body_of(number)));
      ask(store_, std::move(verb), [this, number](const auto& reply) {
        if (reply->verdict != Verdict::done) std::abort();
        say(fmt::format("completed {} .", number));
        reserve();
      });
    });
  }

 private:
  Store& store_;
  std::atomic<std::uint32_t> next_;
};

TEST(Child, DISABLED_hammers) {
  const auto store = open_sqlite(setting("IDEM_CHILD_STORE"), test_settings());
  if (!store) return say("refused: " + store.error().detail);
  Hammer hammer(**store, static_cast<std::uint32_t>(std::stoul(setting("IDEM_CHILD_FIRST"))));
  for (int chain = 0; chain < 24; ++chain) hammer.reserve();
  pause();
}

TEST(Child, DISABLED_appends_to_a_journal) {
  const auto store = open_sqlite(setting("IDEM_CHILD_STORE"), test_settings());
  if (!store) return say("refused: " + store.error().detail);
  const auto end = ask_and_wait(**store, ReadLines{"audit", 0, 0});
  ASSERT_TRUE(end);
  for (std::uint64_t last = end->last;; ++last) {
    const auto reply = ask_and_wait(**store, AppendLine{"audit", last, body_of(7)});
    if (!reply || !reply->appended) return say("refused");
    say(fmt::format("appended {} .", reply->last));
  }
}

TEST(Child, DISABLED_meets_a_failing_disk) {
  FailingVfs& vfs = failing_vfs();
  const auto store =
      open_sqlite(setting("IDEM_CHILD_STORE"), test_settings(), {.vfs = failing_vfs_name});
  if (!store) return say("refused: " + store.error().detail);
  ASSERT_TRUE(ask_and_wait(**store, wide_reserve(1, **store)));
  say("the first is durable");
  const std::string which = setting("IDEM_CHILD_FAILURE");
  if (which == "full") vfs.log_write = SQLITE_FULL;
  if (which == "write") vfs.log_write = SQLITE_IOERR_WRITE;
  if (which == "sync") vfs.log_sync = SQLITE_IOERR_FSYNC;
  ask(**store, wide_reserve(2, **store), [](const auto&) { say("the second was answered"); });
  pause();
}

// ---- what the parent makes of them ----

class SqliteCrash : public testing::Test {
 protected:
  std::string path() const { return folder.file("idem.db"); }
  std::vector<std::string> environment(std::vector<std::string> more = {}) const {
    more.push_back("IDEM_CHILD_STORE=" + path());
    return more;
  }
  std::unique_ptr<Store> open() {
    auto store = open_sqlite(path(), test_settings());
    if (store) return std::move(*store);
    ADD_FAILURE() << store.error().detail;
    return nullptr;
  }

  TempFolder folder;
};

TEST_F(SqliteCrash, T01_a_second_process_is_refused_until_the_first_is_gone) {
  const auto owner = child("holds_the_file", environment());
  ASSERT_TRUE(owner->wait_for_line("holding"));
  const auto second = open_sqlite(path(), test_settings());
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().detail.find("another process owns " + path()), std::string::npos);
  const auto third = child("holds_the_file", environment());
  const auto refusal = third->wait_for_line("refused");
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->find("another process owns"), std::string::npos);
  owner->signal(SIGKILL);
  EXPECT_EQ(owner->exit_code(), 128 + SIGKILL);
  EXPECT_TRUE(open());
}

/// The reports of the killed child, from whole lines only.
struct Reported {
  std::map<std::uint32_t, Fence> reserved;
  std::set<std::uint32_t> completed;
};

Reported reported_by(const std::string& output) {
  Reported reported;
  std::istringstream lines(output.substr(0, output.rfind('\n') + 1));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what;
    std::uint32_t number = 0;
    if (!(words >> what >> number)) continue;
    if (what == "completed") reported.completed.insert(number);
    if (what == "reserved") words >> reported.reserved[number];
  }
  return reported;
}

TEST_F(SqliteCrash, P2_whatever_was_acknowledged_survives_a_kill_in_the_middle_of_commits) {
  std::set<Fence> granted;
  std::uint32_t first = 0;
  for (int round = 0; round < 6; ++round) {
    const auto hammer =
        child("hammers", environment({"IDEM_CHILD_FIRST=" + std::to_string(first)}));
    ASSERT_TRUE(hammer->wait_for_line(fmt::format("completed {} ", first + 100 * (round + 1))));
    hammer->signal(SIGKILL);
    ASSERT_EQ(hammer->exit_code(), 128 + SIGKILL);
    const Reported reported = reported_by(hammer->output());
    ASSERT_GT(reported.completed.size(), 50u);

    const auto store = open();
    ASSERT_TRUE(store);
    for (const auto& [number, fence] : reported.reserved) {
      EXPECT_TRUE(granted.insert(fence).second) << "fence " << fence << " was granted twice";
      const auto record = ask_and_wait(*store, Find{wide_key(number)});
      ASSERT_TRUE(record && *record) << "reserve " << number << " was acknowledged and is lost";
      EXPECT_EQ((*record)->fence(), fence);
      first = std::max(first, number);
    }
    for (const std::uint32_t number : reported.completed) {
      const auto outcome = ask_and_wait(*store, wide_reserve(number, *store));
      ASSERT_TRUE(outcome && is<Replay>(*outcome)) << number;
      EXPECT_EQ(std::get<Replay>(*outcome).response, answer(201, body_of(number)));
    }
    // A fence of this start is above all that the starts before reported.
    const auto next = ask_and_wait(*store, wide_reserve(first + 50'000, *store));
    ASSERT_TRUE(next && is<Execute>(*next));
    EXPECT_GT(std::get<Execute>(*next).attempt.fence, *granted.rbegin());
    granted.insert(std::get<Execute>(*next).attempt.fence);
    first += 100'000;
  }
}

TEST_F(SqliteCrash, P2_every_line_of_a_journal_that_was_confirmed_survives_a_kill) {
  std::uint64_t confirmed = 0;
  for (int round = 0; round < 4; ++round) {
    const auto appender = child("appends_to_a_journal", environment());
    ASSERT_TRUE(appender->wait_for_line(fmt::format("appended {} ", confirmed + 40)));
    appender->signal(SIGKILL);
    ASSERT_EQ(appender->exit_code(), 128 + SIGKILL);
    std::istringstream lines(appender->output());
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("appended ") || !line.ends_with(" .")) continue;
      confirmed = std::stoull(line.substr(sizeof "appended"));
    }
    const auto store = open();
    ASSERT_TRUE(store);
    const auto end = ask_and_wait(*store, ReadLines{"audit", 0, 0});
    ASSERT_TRUE(end);
    ASSERT_GE(end->last, confirmed);
    confirmed = 0;
    while (confirmed < end->last) {
      const auto read = ask_and_wait(*store, ReadLines{"audit", confirmed, 100});
      ASSERT_TRUE(read && !read->lines.empty());
      for (const JournalLine& line : read->lines) {
        EXPECT_EQ(line.seq, ++confirmed);
        EXPECT_FALSE(line.is_damaged);
        EXPECT_EQ(line.bytes, body_of(7));
      }
    }
  }
}

class SqliteFailingDisk : public SqliteCrash, public testing::WithParamInterface<const char*> {};

TEST_P(SqliteFailingDisk, P5_a_failed_commit_stops_the_process_and_answers_nobody) {
  const auto process =
      child("meets_a_failing_disk", environment({std::string("IDEM_CHILD_FAILURE=") + GetParam()}));
  EXPECT_EQ(process->exit_code(), 128 + SIGABRT);
  const std::string output = process->output();
  EXPECT_NE(output.find("the first is durable"), std::string::npos) << output;
  EXPECT_EQ(output.find("the second was answered"), std::string::npos) << output;
  EXPECT_NE(output.find("idem: sqlite store failed path=" + path()), std::string::npos) << output;
  const auto store = open();
  ASSERT_TRUE(store);
  EXPECT_TRUE(ask_and_wait(*store, Find{wide_key(1)})->has_value());
  // After a failed fsync the second may or may not be there; the start decides, once and for all.
  const auto second = ask_and_wait(*store, Find{wide_key(2)});
  const bool may_be_there = std::string(GetParam()) == "sync";
  EXPECT_TRUE(may_be_there || !second->has_value());
}

INSTANTIATE_TEST_SUITE_P(Disk, SqliteFailingDisk, testing::Values("full", "write", "sync"),
                         [](const auto& named) { return std::string(named.param); });

TEST_F(SqliteCrash, T18_only_the_owner_thread_checkpoints) {
  FailingVfs& vfs = failing_vfs();
  auto opened = open_sqlite(path(), test_settings(), {.vfs = failing_vfs_name});
  ASSERT_TRUE(opened);
  vfs.forget_checkpointers();  // Making the file is not a checkpoint.
  std::thread::id owner;
  for (std::uint32_t number = 0; number < 80; ++number) {
    auto outcome = ask_and_wait(**opened, wide_reserve(number, **opened));
    ASSERT_TRUE(outcome);
    std::promise<void> done;
    ask(**opened, a_complete(std::get<Execute>(*outcome), answer(200, std::string(1 << 20, 'b'))),
        [&](const auto&) {
          owner = std::this_thread::get_id();
          done.set_value();
        });
    done.get_future().wait();
  }
  EXPECT_EQ(vfs.checkpointers(), std::set{owner});
  EXPECT_LT(std::filesystem::file_size(path() + "-wal"), 64u << 20) << "the log is bounded";
  opened->reset();
  EXPECT_EQ(vfs.checkpointers(), std::set{owner}) << "also at the end";
  EXPECT_FALSE(std::filesystem::exists(path() + "-wal"));
}

}  // namespace
}  // namespace idem::test
