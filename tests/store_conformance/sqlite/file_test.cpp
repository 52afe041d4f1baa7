#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/lost_medium.hpp"
#include "store_conformance/sqlite/service_connection.hpp"

#include <idem/sqlite.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/// The file below a store that is open: removed, replaced, or left open by a dead process.
namespace idem::test {
namespace {

namespace fs = std::filesystem;
using Code = StoreError::Code;

class SqliteFile : public OnLostMedium {
 protected:
  void SetUp() override {
    store_ = open_by_url("sqlite:" + path(), clock);
    complete(1);
  }

  std::string path(const std::string& name = "idem.db") const { return folder_.file(name); }
  Store& store() { return *store_; }
  void close() { store_.reset(); }
  void reopen() {
    close();
    store_ = open_by_url("sqlite:" + path(), clock);
  }
};

TEST_F(SqliteFile, T01_a_file_that_is_moved_stores_nothing_until_it_is_back) {
  fs::rename(path(), path("elsewhere.db"));
  expect_nothing_is_stored();
  fs::rename(path("elsewhere.db"), path());
  EXPECT_EQ(outcome_of(1), "replay");
  complete(4);
  reopen();
  EXPECT_EQ(outcome_of(4), "replay");
}

TEST_F(SqliteFile, T01_a_file_that_is_deleted_stores_nothing) {
  fs::remove(path());
  expect_nothing_is_stored();
}

TEST_F(SqliteFile, T01_a_file_that_another_one_replaces_stores_nothing) {
  fs::copy_file(path(), path("copy.db"));
  fs::rename(path("copy.db"), path());
  expect_nothing_is_stored();
}

TEST_F(SqliteFile, T01_a_log_that_is_deleted_stores_nothing_and_loses_nothing) {
  complete(5);
  ASSERT_TRUE(fs::remove(path("idem.db-wal")));
  expect_nothing_is_stored();
  // As a start after a crash would find it.
  fs::copy_file(path(), path("after.db"));
  const auto after = open_by_url("sqlite:" + path("after.db"), clock);
  for (const int number : {1, 5}) EXPECT_EQ(outcome_of(*after, number), "replay") << number;
}

TEST_F(SqliteFile, T01_a_link_that_is_pointed_elsewhere_is_noticed) {
  close();
  fs::create_symlink(path(), path("link.db"));
  store_ = open_by_url("sqlite:" + path("link.db"), clock);
  EXPECT_EQ(outcome_of(1), "replay");
  fs::remove(path("link.db"));
  fs::create_symlink(path("other.db"), path("link.db"));
  expect_nothing_is_stored();
}

TEST_F(SqliteFile, T01_a_transaction_in_a_file_that_is_gone_fails) {
  Transactions& transactions = *store().transactions();
  ASSERT_TRUE(transactions.run("CREATE TABLE payments (key INTEGER)"));
  const auto pay = [&](int number) {
    InTransaction what;
    what.reserve = a_reserve(number);
    what.reserve->generation = 1;
    what.work = [](Transaction& transaction, const RecordId& id,
                   const Attempt& attempt) -> std::optional<StoreCall> {
      transaction.run("INSERT INTO payments VALUES (1)");
      return Complete{id, attempt, answer(), ""};
    };
    return transactions.run(std::move(what)).how;
  };
  EXPECT_EQ(pay(6), TransactionEnd::How::committed);
  fs::rename(path(), path("elsewhere.db"));
  EXPECT_EQ(pay(7), TransactionEnd::How::in_doubt);
  EXPECT_EQ(pay(8), TransactionEnd::How::unavailable);
  EXPECT_FALSE(transactions.run("SELECT 1"));
  fs::rename(path("elsewhere.db"), path());
  EXPECT_EQ(pay(8), TransactionEnd::How::committed);
  EXPECT_EQ(std::get<std::int64_t>((*transactions.run("SELECT count(*) FROM payments"))[0][0]), 3);
}

TEST_F(SqliteFile, T01_the_same_on_a_connection_of_the_services) {
  close();
  sqlite3* const db = service_connection(path());
  auto opened = open_sqlite_on(db, test_settings());
  ASSERT_TRUE(opened) << opened.error();
  store_ = std::move(*opened);
  complete(9);
  fs::rename(path(), path("elsewhere.db"));
  EXPECT_EQ(error_of(a_reserve(2)), Code::in_doubt);
  EXPECT_EQ(error_of(a_reserve(3)), Code::unavailable);
}

// ---- a process that died with the file open ----

class SqliteCutOff : public testing::Test {
 protected:
  static Reserve reserve(int number, bool dispatched, LeasePolicy policy) {
    Reserve verb = a_reserve(number);
    verb.dispatched = dispatched;
    verb.lease_policy = policy;
    verb.generation = 1;
    return verb;
  }

  /// Reserves all of them and dies by SIGKILL. Or closes the store before it ends.
  void leave_running(bool is_killed) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto store = open_by_url("sqlite:" + path(), clock);
      bool good = true;
      for (const auto& verb :
           {reserve(1, true, LeasePolicy::unknown), reserve(2, false, LeasePolicy::unknown),
            reserve(3, true, LeasePolicy::rerun), reserve(4, true, LeasePolicy::resume),
            reserve(5, false, LeasePolicy::rerun)}) {
        const auto outcome = ask_and_wait(*store, verb);
        good &= outcome && is<Execute>(*outcome);
      }
      Accept accept = an_accept(6);
      accept.as.generation = 1;
      good &= ask_and_wait(*store, accept).has_value();
      const auto claimed = ask_and_wait(*store, Claim{token(9), "dispatcher", lease, false});
      good &= claimed && *claimed;
      if (is_killed && good) ::raise(SIGKILL);
      store.reset();
      ::_exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(is_killed ? WIFSIGNALED(status) : status == 0, true) << status;
  }

  std::string path() const { return folder_.file("idem.db"); }
  std::optional<State> state(Store& store, int number) {
    const auto found = ask_and_wait(store, Find{key(number)});
    if (!found || !*found) return std::nullopt;
    return (*found)->state;
  }

  TestClock clock;
  TempFolder folder_;
};

TEST_F(SqliteCutOff, T52_a_start_after_a_kill_ends_what_the_dead_process_alone_decides) {
  leave_running(true);
  const auto store = open_by_url("sqlite:" + path(), clock);
  EXPECT_EQ(state(*store, 1), State::unknown) << "it may have been sent";
  EXPECT_EQ(state(*store, 2), State::failed_retryable) << "it was not";
  // Its upstream may still be at it: the next attempt waits for the lease.
  EXPECT_EQ(state(*store, 3), State::in_progress);
  EXPECT_EQ(state(*store, 4), State::in_progress);
  EXPECT_EQ(state(*store, 5), State::failed_retryable);
  EXPECT_EQ(state(*store, 6), State::pending);
  const auto log = ask_and_wait(*store, ReadEvidence{key(1)});
  ASSERT_TRUE(log && log->size() == 1);
  EXPECT_EQ(log->front().source, "start");
  EXPECT_EQ(log->front().evidence, "process_ended");
  // The sweeper reports them, once.
  EXPECT_EQ(ask_and_wait(*store, Sweep{10})->size(), 4U);
  EXPECT_EQ(ask_and_wait(*store, Sweep{10})->size(), 0U);
  const auto claimed = ask_and_wait(*store, Claim{token(10), "dispatcher", lease, true});
  EXPECT_TRUE(claimed && *claimed) << "it need not wait for the lease";
}

// At no size may a start end in an abort: it writes the more, the more attempts it has to end.
TEST_F(SqliteCutOff, T52_a_start_asks_for_the_room_that_ending_them_needs) {
  leave_running(true);
  const auto open_with = [&](rlim_t bytes) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{bytes, bytes};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      const auto store = open_sqlite(path(), test_settings(), {});
      const bool names_it = !store && store.error().detail.find("disk") != std::string::npos;
      ::_exit(store ? 0 : names_it ? 1 : 2);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(open_with(600UL * 1024), 1) << "enough for a start that has none to end";
  EXPECT_EQ(open_with(612UL * 1024), 0);
}

// §19: the upstream may be at it until the end of the lease, also after a death.
TEST_F(SqliteCutOff, S19_nothing_there_counts_no_sooner_than_by_the_lease) {
  leave_running(true);
  const auto store = open_by_url("sqlite:" + path(), clock);
  const auto found = ask_and_wait(*store, Find{key(1)});
  ASSERT_TRUE(found && *found);
  const auto fence = (*found)->fence();
  clock.advance(lease / 2);
  Resolve nothing = a_resolve(1, Resolve::As::failed_retryable, fence, clock.now());
  EXPECT_EQ(ask_and_wait(*store, nothing)->verdict, Resolve::Verdict::too_early);
  clock.advance(lease);
  nothing.observed_at = clock.now();
  EXPECT_EQ(ask_and_wait(*store, nothing)->verdict, Resolve::Verdict::done);
}

TEST_F(SqliteCutOff, T52_after_a_close_the_leases_stay) {
  leave_running(false);
  const auto store = open_by_url("sqlite:" + path(), clock);
  for (const int number : {1, 2, 3, 4, 5, 6}) {
    EXPECT_EQ(state(*store, number), State::in_progress) << number;
  }
  EXPECT_EQ(ask_and_wait(*store, Sweep{10})->size(), 0U);
}

}  // namespace
}  // namespace idem::test
