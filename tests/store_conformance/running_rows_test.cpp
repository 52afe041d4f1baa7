#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/harness.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstring>
#include <latch>

/// The embedded store keeps running rows in no index of the file: after a start it finds them by
/// reading from a floor on. A running row below the floor would be taken for absent, and run twice.
namespace idem::test {
namespace {

class RunningRows : public testing::Test {
 protected:
  void SetUp() override { reopen(); }

  void reopen() {
    store_.reset();
    store_ = open_by_url("sqlite:" + path(), clock);
  }
  void close() { store_.reset(); }
  std::string path() const { return folder_.file("idem.db"); }
  Store& store() { return *store_; }

  template <class Verb>
  typename Verb::Reply ask(Verb verb) {
    if constexpr (std::is_same_v<Verb, Reserve>) verb.generation = 1;
    auto reply = ask_and_wait(*store_, std::move(verb));
    if (reply) return std::move(*reply);
    ADD_FAILURE() << reply.error().detail;
    return {};
  }

  Execute run(Reserve verb) {
    const auto outcome = ask(std::move(verb));
    EXPECT_TRUE(is<Execute>(outcome)) << describe(outcome);
    return is<Execute>(outcome) ? std::get<Execute>(outcome) : Execute{};
  }

  /// So many new keys reserved, and completed where `settle`: enough rows to lift the floor.
  void pass(std::uint32_t count, bool settle = true) {
    std::latch left(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      Reserve verb = a_reserve(0);
      const std::uint32_t number = ++passed_;
      std::memcpy(verb.id.bytes.data(), &number, sizeof number);
      verb.id.bytes[15] = 0xcc;
      verb.generation = 1;
      idem::ask(store(), std::move(verb), [&, settle](const auto& outcome) {
        if (!settle) return left.count_down();
        idem::ask(store(), a_complete(std::get<Execute>(*outcome)),
                  [&](const auto&) { left.count_down(); });
      });
    }
    left.wait();
  }

  /// In waves, so that the rows in flight do not themselves hold the floor down.
  void lift_the_floor() {
    const std::int64_t before = floor();
    for (int wave = 0; wave < 30; ++wave) pass(1'000);
    close();
    EXPECT_GT(floor(), before) << "this test needs a floor that rose";
    reopen();
  }

  /// Read from the file, which is closed meanwhile.
  std::int64_t floor() {
    const bool was_open = store_ != nullptr;
    close();
    sqlite3* db = nullptr;
    sqlite3_stmt* rows = nullptr;
    sqlite3_open(path().c_str(), &db);
    sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE name = 'running_floor'", -1, &rows,
                       nullptr);
    const std::int64_t value = sqlite3_step(rows) == SQLITE_ROW ? sqlite3_column_int64(rows, 0) : 0;
    sqlite3_finalize(rows);
    sqlite3_close(db);
    if (was_open) reopen();
    return value;
  }

  void sql(const std::string& text) {
    sqlite3* db = nullptr;
    sqlite3_open(path().c_str(), &db);
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
  }

  TestClock clock;

 private:
  TempFolder folder_;
  std::uint32_t passed_ = 0;
  std::unique_ptr<Store> store_;
};

TEST_F(RunningRows, T01_a_row_that_was_running_before_the_others_is_found_after_a_start) {
  const Execute first = run(a_reserve(1));
  for (int wave = 0; wave < 20; ++wave) pass(1'000);
  reopen();
  EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 2))));
  EXPECT_EQ(ask(a_complete(first)).verdict, Verdict::done);
  EXPECT_TRUE(is<Replay>(ask(a_reserve(1, 2))));
}

TEST_F(RunningRows, T01_a_retry_in_an_old_place_lowers_the_floor_with_it) {
  ask(a_release(run(a_reserve(1))));
  lift_the_floor();
  const Execute second = run(a_reserve(1, 2));  // Far below the floor.
  reopen();
  EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 3)))) << "taken for absent, it would run twice";
  EXPECT_EQ(ask(a_complete(second)).verdict, Verdict::done);
}

TEST_F(RunningRows, T01_a_claim_of_an_old_request_lowers_the_floor_with_it) {
  Accept accept = an_accept(1);
  accept.as.generation = 1;
  ASSERT_TRUE(is<Pending>(ask(accept)));
  lift_the_floor();
  const auto claimed = ask(Claim{token(50), "dispatcher", lease, true});
  ASSERT_TRUE(claimed);
  reopen();
  EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 3))));
  const auto record = ask(Find{key(1)});
  ASSERT_TRUE(record);
  EXPECT_EQ(record->stored_request, "POST / please");
}

TEST_F(RunningRows, T01_the_floor_follows_a_table_that_was_emptied) {
  lift_the_floor();
  clock.advance(retention + tombstone);
  for (int round = 0; round < 2; ++round) {
    while (!ask(Reap{5'000}).empty()) {
    }
  }
  EXPECT_TRUE(ask(List{}).empty());
  run(a_reserve(1));  // In one of the first places again.
  reopen();
  EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 2))));
}

TEST_F(RunningRows, T52_the_lease_of_a_row_found_after_a_start_is_swept) {
  run(a_reserve(1));
  reopen();
  clock.advance(lease);
  const auto steps = ask(Sweep{10});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0], (LifecycleStep{key(1), State::in_progress, State::unknown}));
  reopen();
  EXPECT_TRUE(is<Unknown>(ask(a_reserve(1, 2))));
}

TEST_F(RunningRows, T30_a_running_row_that_cannot_be_read_is_not_run_again) {
  run(a_reserve(1));
  close();
  sql("UPDATE slots SET token = x'00'");
  reopen();
  Reserve verb = a_reserve(1, 2);
  verb.generation = 1;
  for (int round = 0; round < 2; ++round) {
    const auto reply = ask_and_wait(store(), verb);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, StoreError::Code::refused);
    reopen();
  }
  run(a_reserve(2));
  EXPECT_EQ(ask(List{}).size(), 1u);
}

TEST_F(RunningRows, T01_many_that_hold_the_floor_down_are_all_found_after_a_start) {
  pass(2'000, false);
  for (int wave = 0; wave < 12; ++wave) pass(1'000);
  reopen();
  EXPECT_EQ(ask(List{.state = State::in_progress, .limit = 5'000}).size(), 2'000u);
}

}  // namespace
}  // namespace idem::test
