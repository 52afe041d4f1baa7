#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <fstream>
#include <random>
#include <thread>

#include "crash/judge.hpp"
#include "support/admin.hpp"
#include "support/live.hpp"

/// `idem store backup`, `check` and `restore`: beside a gateway that serves, over kill -9 between
/// each two of their steps, and over damaged bytes. The provider's ledger is the judge.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

std::string name_of_kind(const testing::TestParamInfo<std::string>& kind) { return kind.param; }

/// Of each kind of embedded store, by the scheme of its URL.
class StoreFiles : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    IDEM_NEED_PROGRAM("idem-crash");
    start();
  }
  void start() {
    gateway_ = std::make_unique<Gateway>(GatewayOptions{
        .upstream = provider_.address(), .store_url = url(), .flags = {"--lease", "40s"}});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  Response ask(const Request& request) { return send_once(gateway_->address(), request); }

  static Ran store(std::vector<std::string> words, const std::string& crash_at = {}) {
    words.insert(words.begin(), "store");
    std::vector<std::string> environment;
    if (!crash_at.empty()) environment.push_back("IDEM_CRASH_AT=" + crash_at);
    return run_program(built_program(crash_at.empty() ? "idem" : "idem-crash"), std::move(words),
                       std::move(environment));
  }
  static Json checked(const std::string& what, int exit_code = 0) {
    const Ran ran = store({"check", what, "--json"});
    EXPECT_EQ(ran.exit_code, exit_code) << ran.output;
    const auto begin = ran.output.find('{');  // Complaints may come first.
    if (begin == std::string::npos) return {};
    const auto end = ran.output.find('\n', begin);
    return parse_json(ran.output.substr(begin, end - begin)).value_or(Json{});
  }
  std::vector<std::string> names_with(const std::string& part) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path())) {
      const std::string name = entry.path().filename();
      if (name.find(part) != std::string::npos && !name.ends_with("-wal")) names.push_back(name);
    }
    return names;
  }
  std::string file(const std::string& name) const { return dir_.path() / name; }
  std::string url() const { return GetParam() + ":" + file("idem.db"); }
  bool is_log() const { return GetParam() == "embedded"; }

  TempDir dir_;
  Provider provider_;
  std::unique_ptr<Gateway> gateway_;
};

INSTANTIATE_TEST_SUITE_P(Stores, StoreFiles, testing::Values("sqlite", "embedded"), name_of_kind);

/// What only the file of SQLite's store has.
class SqliteFiles : public StoreFiles {};
INSTANTIATE_TEST_SUITE_P(Stores, SqliteFiles, testing::Values("sqlite"), name_of_kind);
/// What only the directory of the log has.
class LogFiles : public StoreFiles {
 protected:
  /// The bytes of a file, and how to write others.
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, LogFiles, testing::Values("embedded"), name_of_kind);

// ---- beside a gateway ----

TEST_P(StoreFiles, a_backup_under_load_replays_every_answer_from_before_it) {
  std::atomic<bool> ends{false};
  std::atomic<int> answered{0};
  std::mutex mutex;
  std::map<std::string, Response> answers;
  std::vector<std::thread> clients;
  for (int client = 0; client < 3; ++client) {
    clients.emplace_back([&, client] {
      for (int number = 0; !ends; ++number) {
        const std::string key = fmt::format("k{}-{}", client, number);
        auto answer = ask(charge(key));
        if (answer.status != 201) ADD_FAILURE() << answer.raw << answer.trouble;
        const std::lock_guard lock(mutex);
        answers.emplace(key, std::move(answer));
        ++answered;
      }
    });
  }
  const auto wait_for = [&](int count) {
    while (answered < count && !HasFailure()) std::this_thread::yield();
  };
  wait_for(60);
  std::map<std::string, Response> before;
  {
    const std::lock_guard lock(mutex);
    before = answers;
  }
  const Ran backup = store({"backup", url(), file("copy.db")});
  wait_for(static_cast<int>(before.size()) + 60);
  const Json live = checked(url());
  ends = true;
  for (auto& client : clients) client.join();
  ASSERT_EQ(backup.exit_code, 0) << backup.output;
  EXPECT_NE(backup.output.find("copied_at 20"), std::string::npos) << backup.output;
  EXPECT_EQ(fs::status(file("copy.db")).permissions(), fs::perms(is_log() ? 0700 : 0600));
  EXPECT_GT(live["records"]["completed"].integer, static_cast<std::int64_t>(before.size()));
  EXPECT_EQ(checked(file("copy.db"))["found"].integer, 0);
  gateway_->kill();
  EXPECT_EQ(gateway_->process().exit_code(), 128 + SIGKILL);
  const Ran restored = store({"restore", file("copy.db"), url(), "--replace"});
  ASSERT_EQ(restored.exit_code, 0) << restored.output;
  start();
  for (const auto& [key, first] : before) {
    EXPECT_TRUE(replays(first, ask(charge(key)))) << key;
    EXPECT_EQ(provider_.effects(key), 1) << key;
  }
}

// What had begun, and what had failed, may have been done after the backup.
TEST_P(StoreFiles, what_was_not_settled_in_a_backup_does_not_run_again) {
  ASSERT_EQ(ask(charge("failed", "refuse=429")).status, 429);
  Connection running(gateway_->address());
  running.send(charge("runs", "hold=h"));
  ASSERT_TRUE(provider_.wait_held("h", 1));
  const std::string before = ask(charge("done")).body;
  ASSERT_EQ(store({"backup", url(), file("copy.db")}).exit_code, 0);
  const Json in_backup = checked(file("copy.db"))["records"];
  EXPECT_EQ(in_backup["in_progress"].integer, 1);
  EXPECT_EQ(in_backup["failed_retryable"].integer, 1);
  // The client's retry, after the backup: the store forgets that it was done.
  EXPECT_EQ(ask(charge("failed")).status, 201);
  provider_.release("h");
  EXPECT_EQ(running.read_response().status, 201);
  ASSERT_EQ(gateway_->terminate(), 0);
  const Ran restored = store({"restore", file("copy.db"), url(), "--replace", "--json"});
  ASSERT_EQ(restored.exit_code, 0) << restored.output;
  const Json report = parse_json(restored.output).value_or(Json{});
  EXPECT_EQ(report["unknown"].integer, 2);
  EXPECT_EQ(checked(report["old_store"].string)["records"]["in_progress"].integer, 0);
  start();
  EXPECT_TRUE(is_problem(ask(charge("runs")), 409, "outcome_unknown"));
  EXPECT_EQ(provider_.effects("runs"), 1);
  EXPECT_TRUE(is_problem(ask(charge("failed")), 409, "outcome_unknown"));
  EXPECT_EQ(provider_.effects("failed"), 1);
  EXPECT_EQ(ask(charge("done")).body, before);
  const Json live = checked(url())["records"];
  EXPECT_EQ(
      live["in_progress"].integer + live["failed_retryable"].integer + live["pending"].integer, 0);
  // A fence of the restored store is above all that were granted since the backup.
  ASSERT_EQ(ask(charge("new")).status, 201);
  const auto fences = provider_.of_key("new").fences;
  ASSERT_EQ(fences.size(), 1U);
  EXPECT_GT(std::stoull(fences.front()), 1ULL << 40);
}

TEST_P(StoreFiles, a_restore_is_refused_while_the_store_is_in_use_or_in_the_way) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  ASSERT_EQ(store({"backup", url(), file("copy.db")}).exit_code, 0);
  const Ran again = store({"backup", url(), file("copy.db")});
  EXPECT_EQ(again.exit_code, 5);
  EXPECT_NE(again.output.find("already; name a new"), std::string::npos) << again.output;
  const Ran in_use = store({"restore", file("copy.db"), url(), "--replace"});
  EXPECT_EQ(in_use.exit_code, 5);
  EXPECT_NE(in_use.output.find("stop the gateway"), std::string::npos) << in_use.output;
  ASSERT_EQ(gateway_->terminate(), 0);
  const Ran in_the_way = store({"restore", file("copy.db"), url()});
  EXPECT_EQ(in_the_way.exit_code, 5);
  EXPECT_NE(in_the_way.output.find("--replace"), std::string::npos) << in_the_way.output;
  EXPECT_EQ(store({"restore", file("none.db"), url(), "--replace"}).exit_code, 4);
  EXPECT_EQ(store({"check", GetParam() + ":" + file("none.db")}).exit_code, 4);
  EXPECT_EQ(store({"check", "postgres://u@h/d"}).exit_code, 2);
  if (is_log()) {
    fs::create_directory(file("other"));
  } else {
    std::ofstream(file("other")) << std::string(2'000, 'x');
  }
  const Ran no_store = store({"check", file("other")});
  EXPECT_EQ(no_store.exit_code, 5);
  EXPECT_NE(no_store.output.find(is_log() ? "is no store of Idem" : "is not a database"),
            std::string::npos)
      << no_store.output;
  EXPECT_EQ(checked(url())["records"]["completed"].integer, 1);
}

// ---- kill -9 ----

TEST_P(StoreFiles, a_killed_backup_leaves_no_file_of_its_name_unless_it_is_whole) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  for (const std::string point :
       {"backup_begun", "backup_copied", "backup_checked", "backup_named"}) {
    SCOPED_TRACE(point);
    const std::string name = file(point + ".db");
    EXPECT_EQ(store({"backup", url(), name}, point).exit_code, 128 + SIGKILL);
    if (point == "backup_named") {
      EXPECT_EQ(checked(name)["records"]["completed"].integer, 1);
    } else {
      EXPECT_FALSE(fs::exists(name));
      EXPECT_EQ(names_with(point + ".db.part-").size(), 1U);
      EXPECT_EQ(store({"backup", url(), name}).exit_code, 0);
    }
  }
  EXPECT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(provider_.effects("k"), 1) << "the gateway served meanwhile";
}

TEST_P(StoreFiles, a_killed_restore_leaves_the_old_store_the_new_one_or_none_that_starts) {
  ASSERT_EQ(ask(charge("both")).status, 201);
  ASSERT_EQ(store({"backup", url(), file("copy.db")}).exit_code, 0);
  ASSERT_EQ(ask(charge("late")).status, 201);
  gateway_->kill();  // So that the last commits are in the log only.
  EXPECT_EQ(gateway_->process().exit_code(), 128 + SIGKILL);
  std::vector<std::string> kept;
  using Points = std::vector<std::string>;
  // Two directories change their names in one step.
  const Points points =
      is_log() ? Points{"restore_prepared", "restore_named"}
               : Points{"restore_prepared", "restore_old_kept", "restore_blocked", "restore_named"};
  for (const std::string& point : points) {
    SCOPED_TRACE(point);
    EXPECT_EQ(store({"restore", file("copy.db"), url(), "--replace"}, point).exit_code,
              128 + SIGKILL);
    std::size_t whole_old = 0;
    // The log's old store may still have the name that the new one had.
    for (const auto& name : names_with(is_log() ? ".restoring-" : ".before-restore-")) {
      whole_old += checked(file(name))["records"]["completed"].integer == 2 ? 1U : 0U;
    }
    if (point == "restore_prepared" || point == "restore_old_kept") {
      EXPECT_EQ(checked(url())["records"]["completed"].integer, 2) << "the old store";
      EXPECT_EQ(whole_old, point == "restore_prepared" ? 0U : 1U);
    } else if (point == "restore_blocked") {
      EXPECT_GE(whole_old, 1U);
      const Ran start = run_program(
          built_program("idem"),
          {"gateway", "--listen", "127.0.0.1:0", "--upstream", "http://" + provider_.address(),
           "--store", url(), "--scope", "header:X-Tenant-Id", "--trust-scope-header"});
      EXPECT_NE(start.exit_code, 0);
      EXPECT_NE(start.output.find("idem store restore was interrupted here"), std::string::npos)
          << start.output;
    } else {
      EXPECT_GE(whole_old, 1U);
      EXPECT_EQ(checked(url())["records"]["completed"].integer, 1) << "the new store";
    }
  }
  start();
  ASSERT_EQ(ask(charge("both")).status, 201);
  EXPECT_EQ(provider_.effects("both"), 1);
}

// ---- damage ----

struct Blob {
  std::int64_t row;
  std::string ref;
  std::string column;
  std::string bytes;
};

class Database {
 public:
  explicit Database(const std::string& path) { sqlite3_open(path.c_str(), &db_); }
  ~Database() { sqlite3_close(db_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  std::vector<Blob> blobs() {
    std::vector<Blob> found;
    for (const std::string column : {"record", "answer", "body"}) {
      sqlite3_stmt* rows = nullptr;
      const std::string sql = "SELECT slot, lower(hex(id)), " + column +
                              " FROM idem_slots WHERE length(" + column + ") > 0";
      sqlite3_prepare_v2(db_, sql.c_str(), -1, &rows, nullptr);
      while (sqlite3_step(rows) == SQLITE_ROW) {
        const auto* bytes = static_cast<const char*>(sqlite3_column_blob(rows, 2));
        found.push_back(
            {sqlite3_column_int64(rows, 0),
             reinterpret_cast<const char*>(sqlite3_column_text(rows, 1)), column,
             std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(rows, 2)))});
      }
      sqlite3_finalize(rows);
    }
    return found;
  }
  void put(const Blob& blob) {
    sqlite3_stmt* put = nullptr;
    const std::string sql = "UPDATE idem_slots SET " + blob.column + " = ?1 WHERE slot = ?2";
    sqlite3_prepare_v2(db_, sql.c_str(), -1, &put, nullptr);
    sqlite3_bind_blob64(put, 1, blob.bytes.data(), blob.bytes.size(), SQLITE_STATIC);
    sqlite3_bind_int64(put, 2, blob.row);
    EXPECT_EQ(sqlite3_step(put), SQLITE_DONE) << sqlite3_errmsg(db_);
    sqlite3_finalize(put);
  }

 private:
  sqlite3* db_ = nullptr;
};

TEST_P(SqliteFiles, a_flipped_bit_is_found_with_the_ref_of_its_record) {
  const unsigned seed = seed_of_this_run();
  std::mt19937 random(seed);
  SCOPED_TRACE(fmt::format("IDEM_SEED={}", seed));
  for (int i = 0; i < 5; ++i) ASSERT_EQ(ask(charge(fmt::format("k{}", i))).status, 201);
  ASSERT_EQ(store({"backup", url(), file("copy.db")}).exit_code, 0);
  Database database(file("copy.db"));
  const auto blobs = database.blobs();
  ASSERT_EQ(blobs.size(), 15U);
  for (int round = 0; round < 5; ++round) {
    const Blob& whole = blobs[random() % blobs.size()];
    Blob damaged = whole;
    damaged.bytes[random() % damaged.bytes.size()] ^= static_cast<char>(1U << random() % 8);
    database.put(damaged);
    const Json report = checked(file("copy.db"), 5);
    ASSERT_EQ(report["findings"].items.size(), 1U) << whole.column;
    EXPECT_EQ(report["findings"].items[0]["where"].string, "record " + whole.ref) << whole.column;
    EXPECT_NE(report["findings"].items[0]["do"].string.find("tell its client"), std::string::npos);
    database.put(whole);
  }
  Blob damaged = blobs.front();
  damaged.bytes.back() ^= 1;
  database.put(damaged);
  ASSERT_EQ(gateway_->terminate(), 0);
  const Ran refused = store({"restore", file("copy.db"), url(), "--replace"});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_NE(refused.output.find("record " + damaged.ref), std::string::npos) << refused.output;
  EXPECT_EQ(store({"restore", file("copy.db"), url(), "--replace", "--accept-damage"}).exit_code,
            0);
}

// Any byte of the file: the check says something, and does not end in the middle.
TEST_P(SqliteFiles, a_check_survives_damage_anywhere) {
  const unsigned seed = seed_of_this_run();
  std::mt19937 random(seed);
  SCOPED_TRACE(fmt::format("IDEM_SEED={}", seed));
  for (int i = 0; i < 5; ++i) ASSERT_EQ(ask(charge(fmt::format("k{}", i))).status, 201);
  ASSERT_EQ(store({"backup", url(), file("copy.db")}).exit_code, 0);
  std::ifstream in(file("copy.db"), std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  int found = 0;
  for (int round = 0; round < 8; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 40; ++i) bytes[random() % bytes.size()] ^= static_cast<char>(random());
    if (round % 4 == 0) bytes.resize(bytes.size() / 2);
    std::ofstream(file("bad.db"), std::ios::binary | std::ios::trunc) << bytes;
    const Ran ran = store({"check", file("bad.db")});
    EXPECT_TRUE(ran.exit_code == 0 || ran.exit_code == 5) << ran.exit_code << ran.output;
    found += ran.exit_code == 5 ? 1 : 0;
  }
  EXPECT_GE(found, 4);
}

TEST_P(LogFiles, a_flipped_bit_is_found_with_the_ref_of_its_record) {
  const unsigned seed = seed_of_this_run();
  std::mt19937 random(seed);
  SCOPED_TRACE(fmt::format("IDEM_SEED={}", seed));
  for (int i = 0; i < 5; ++i) ASSERT_EQ(ask(charge(fmt::format("k{}", i))).status, 201);
  ASSERT_EQ(store({"backup", url(), file("copy")}).exit_code, 0);
  const std::string versions = file("copy/records/00000001.records");
  const std::string whole = content(versions);
  for (int round = 0; round < 8; ++round) {
    std::string damaged = whole;
    const std::size_t at = random() % damaged.size();
    damaged[at] ^= static_cast<char>(1U << random() % 8);
    put(versions, damaged);
    const Json report = checked(file("copy"), 5);
    ASSERT_EQ(report["findings"].items.size(), 1U) << "byte " << at;
    EXPECT_TRUE(report["findings"].items[0]["where"].string.starts_with("record ")) << at;
    EXPECT_NE(report["findings"].items[0]["do"].string.find("tell its client"), std::string::npos);
    EXPECT_GE(report["records"]["completed"].integer, 4) << "byte " << at;
  }
  ASSERT_EQ(gateway_->terminate(), 0);
  const Ran refused = store({"restore", file("copy"), url(), "--replace"});
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_NE(refused.output.find("record "), std::string::npos) << refused.output;
  EXPECT_EQ(store({"restore", file("copy"), url(), "--replace", "--accept-damage"}).exit_code, 0);
  EXPECT_EQ(store({"check", url()}).exit_code, 5);
}

// Any byte of any file: the check says something, and does not end in the middle.
TEST_P(LogFiles, a_check_survives_damage_anywhere) {
  const unsigned seed = seed_of_this_run();
  std::mt19937 random(seed);
  SCOPED_TRACE(fmt::format("IDEM_SEED={}", seed));
  for (int i = 0; i < 5; ++i) ASSERT_EQ(ask(charge(fmt::format("k{}", i))).status, 201);
  ASSERT_EQ(store({"backup", url(), file("copy")}).exit_code, 0);
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(file("copy"))) {
    if (entry.is_regular_file() && entry.file_size() > 0) files.push_back(entry.path());
  }
  int found = 0;
  for (int round = 0; round < 40; ++round) {
    const std::string& path = files[static_cast<std::size_t>(round) % files.size()];
    const std::string whole = content(path);
    std::string bytes = whole;
    for (int i = 0; i < 5; ++i) bytes[random() % bytes.size()] ^= static_cast<char>(random());
    if (round % 3 == 0) bytes.resize(bytes.size() / 2);
    put(path, bytes);
    const Ran ran = store({"check", file("copy")});
    EXPECT_TRUE(ran.exit_code == 0 || ran.exit_code == 5) << path << ran.exit_code << ran.output;
    found += ran.exit_code == 5 ? 1 : 0;
    put(path, whole);
  }
  EXPECT_GE(found, 20);
  EXPECT_EQ(store({"check", file("copy")}).exit_code, 0);
}

}  // namespace
}  // namespace idem::test
