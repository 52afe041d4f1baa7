#include "core/bytes/checksum.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/harness.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <atomic>
#include <cstring>
#include <latch>

/// The embedded store keeps what runs in a table of its own, and in memory beside it. A running
/// record that a start regards as absent would run twice.
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

  /// So many new keys reserved at once, and completed where `settle`.
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

  void sql(const std::string& text) {
    close();
    sqlite3* db = nullptr;
    sqlite3_open(path().c_str(), &db);
    sqlite3_create_function_v2(db, "named", 1, SQLITE_UTF8, nullptr, &with_checksum, nullptr,
                               nullptr, nullptr);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), nullptr, nullptr, &message), SQLITE_OK) << message;
    sqlite3_close(db);
    reopen();
  }

  /// SQL: an id as it lies among those that run.
  static void with_checksum(sqlite3_context* context, int, sqlite3_value** values) {
    RecordId id;
    std::memcpy(id.bytes.data(), sqlite3_value_blob(values[0]), id.bytes.size());
    std::string named(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
    append_checksum(id, named);
    sqlite3_result_blob(context, named.data(), static_cast<int>(named.size()), SQLITE_TRANSIENT);
  }

  /// Read from the file, which is closed meanwhile.
  std::int64_t number(const std::string& query) {
    close();
    sqlite3* db = nullptr;
    sqlite3_stmt* rows = nullptr;
    sqlite3_open(path().c_str(), &db);
    sqlite3_prepare_v2(db, query.c_str(), -1, &rows, nullptr);
    EXPECT_EQ(sqlite3_step(rows), SQLITE_ROW) << query;
    const std::int64_t value = sqlite3_column_int64(rows, 0);
    sqlite3_finalize(rows);
    sqlite3_close(db);
    reopen();
    return value;
  }
  std::int64_t rows_in(const std::string& table) {
    return number("SELECT count(*) FROM idem_" + table);
  }

  /// Not once, and not after a start either.
  void expect_refused(int key_number) {
    Reserve reserve = a_reserve(key_number, 2);
    reserve.generation = 1;
    for (int round = 0; round < 2; ++round) {
      const auto reply = ask_and_wait(store(), reserve);
      ASSERT_FALSE(reply) << describe(*reply);
      EXPECT_EQ(reply.error().code, StoreError::Code::damaged);
      EXPECT_FALSE(ask_and_wait(store(), Find{key(key_number)}));
      EXPECT_FALSE(
          ask_and_wait(store(), Complete{key(key_number), {std::nullopt, token(1)}, answer(), ""}));
      clock.advance(2 * lease);
      for (const LifecycleStep& step : ask(Sweep{100})) {
        EXPECT_TRUE(step.id != key(key_number) || step.damaged);
      }
      reopen();
    }
    for (const Record& record : ask(List{})) EXPECT_NE(record.id, key(key_number));
  }

  TestClock clock;

 private:
  TempFolder folder_;
  std::uint32_t passed_ = 0;
  std::unique_ptr<Store> store_;
};

TEST_F(RunningRows, T01_a_row_that_was_running_before_the_others_is_found_after_a_start) {
  const Execute first = run(a_reserve(1));
  pass(1'000);
  reopen();
  EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 2))));
  EXPECT_EQ(ask(a_complete(first)).verdict, Verdict::done);
  EXPECT_TRUE(is<Replay>(ask(a_reserve(1, 2))));
}

// Their rows are written over those that settle.
TEST_F(RunningRows,
       T01_an_attempt_begun_while_others_settle_in_one_transaction_is_found_after_a_start) {
  std::vector<Execute> old;
  for (int n = 0; n < 60; ++n) old.push_back(run(a_reserve(n)));
  // All in one transaction: its calls gather while the store's thread is held.
  std::latch held(1);
  std::latch go_on(1);
  idem::ask(store(), Count{}, [&](const auto&) {
    held.count_down();
    go_on.wait();
  });
  held.wait();
  std::atomic<int> wrong{0};
  std::latch left(120);
  const auto settled = [&](const auto& reply) {
    if (!reply || reply->verdict != Verdict::done) ++wrong;
    left.count_down();
  };
  for (int n = 0; n < 60; ++n) {
    const auto reserve_new = [&] {
      Reserve verb = a_reserve(100 + n);
      verb.generation = 1;
      idem::ask(store(), std::move(verb), [&](const auto& outcome) {
        if (!outcome || !is<Execute>(*outcome)) ++wrong;
        left.count_down();
      });
    };
    if (n % 2 == 0) reserve_new();  // Some find an erased row before them, and some do not.
    const Execute& it = old[static_cast<std::size_t>(n)];
    if (n % 4 == 0) {
      idem::ask(store(), a_complete(it), settled);
    } else if (n % 4 == 1) {
      idem::ask(store(), a_release(it), settled);
    } else if (n % 4 == 2) {
      idem::ask(store(), MarkUnknown{it.id, it.attempt, "x", {}, ""}, settled);
    } else {
      idem::ask(store(), Renew{it.id, it.attempt, lease}, settled);
    }
    if (n % 2 == 1) reserve_new();
  }
  go_on.count_down();
  left.wait();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(rows_in("running"), 75);
  for (int n = 0; n < 60; ++n) {
    EXPECT_TRUE(is<InProgress>(ask(a_reserve(100 + n, 2)))) << n;
    const auto outcome = ask(a_reserve(n, 2));
    const bool right = n % 4 == 0   ? is<Replay>(outcome)
                       : n % 4 == 1 ? is<Execute>(outcome)
                       : n % 4 == 2 ? is<Unknown>(outcome)
                                    : is<InProgress>(outcome);
    EXPECT_TRUE(right) << n << ' ' << describe(outcome);
  }
}

TEST_F(RunningRows, T01_a_retry_of_an_old_record_is_found_after_a_start) {
  ask(a_release(run(a_reserve(1))));
  pass(1'000);
  const Execute second = run(a_reserve(1, 2));
  reopen();
  EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 3)))) << "taken for absent, it would run twice";
  EXPECT_EQ(ask(a_complete(second)).verdict, Verdict::done);
}

TEST_F(RunningRows, T01_many_that_run_are_all_found_after_a_start) {
  pass(2'000, false);
  pass(2'000);
  reopen();
  EXPECT_EQ(ask(List{.state = State::in_progress, .limit = 5'000}).size(), 2'000u);
}

TEST_F(RunningRows, S02_a_record_lies_in_one_table_or_the_other) {
  const Execute won = run(a_reserve(1));
  EXPECT_EQ(rows_in("running"), 1);
  EXPECT_EQ(rows_in("slots"), 0);
  ask(a_complete(won));
  EXPECT_EQ(rows_in("running"), 0);
  EXPECT_EQ(rows_in("slots"), 1);
  ask(a_release(run(a_reserve(2))));
  EXPECT_EQ(rows_in("slots"), 2);
  run(a_reserve(2, 2));
  EXPECT_EQ(rows_in("running"), 1);
  EXPECT_EQ(rows_in("slots"), 1);
}

TEST_F(RunningRows, T01_an_owners_change_of_a_running_record_is_found_after_a_start) {
  Reserve verb = a_reserve(1);
  verb.dispatched = false;
  const Execute won = run(verb);
  clock.advance(lease / 2);
  EXPECT_EQ(ask(Renew{won.id, won.attempt, lease}).verdict, Verdict::done);
  EXPECT_EQ(ask(Dispatched{won.id, won.attempt}).verdict, Verdict::done);
  EXPECT_EQ(ask(Advance{won.id, won.attempt, "phase-2 " + std::string(5'000, 'p')}).verdict,
            Verdict::done);
  const std::string before = describe(ask(Find{key(1)}));
  reopen();
  EXPECT_EQ(describe(ask(Find{key(1)})), before);
  EXPECT_EQ(rows_in("running"), 1);
  clock.advance(lease);
  ASSERT_EQ(ask(Sweep{10}).size(), 1u);
  EXPECT_EQ(ask(Find{key(1)})->state, State::unknown) << "it was marked as dispatched";
}

TEST_F(RunningRows, T01_a_request_survives_its_claims) {
  const std::string request(10'000, 'r');
  Accept accept = an_accept(1, request);
  accept.as.generation = 1;
  ASSERT_TRUE(is<Pending>(ask(accept)));
  const std::int64_t slot = number("SELECT slot FROM idem_requests");
  for (int round = 0; round < 3; ++round) {
    pass(50);
    clock.advance(5s);
    const auto claimed = ask(Claim{token(50 + round), "dispatcher", lease, true});
    ASSERT_TRUE(claimed);
    EXPECT_EQ(claimed->request, request);
    EXPECT_EQ(number("SELECT slot FROM idem_running"), slot) << "its number is its own for life";
    EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 3))));
    EXPECT_EQ(ask(Find{key(1)})->stored_request, request);
    const Execute attempt{claimed->id, claimed->attempt, {}};
    if (round == 2) {
      ask(a_complete(attempt));
      break;
    }
    ask(a_release(attempt));
    EXPECT_EQ(ask(Find{key(1)})->state, State::pending);
    EXPECT_EQ(ask(Find{key(1)})->stored_request, request);
    EXPECT_EQ(rows_in("requests"), 1);
  }
  EXPECT_EQ(rows_in("requests"), 0);
  EXPECT_TRUE(is<Replay>(ask(a_reserve(1, 3))));
}

TEST_F(RunningRows, T01_a_number_is_not_given_again_while_its_record_runs) {
  Accept accept = an_accept(1);
  accept.as.generation = 1;
  ASSERT_TRUE(is<Pending>(ask(accept)));
  const auto claimed = ask(Claim{token(50), "dispatcher", lease, true});
  ASSERT_TRUE(claimed);
  reopen();  // No slot has the number now, but the running record does.
  accept = an_accept(2, "another request");
  accept.as.generation = 1;
  ASSERT_TRUE(is<Pending>(ask(accept)));
  EXPECT_EQ(ask(Find{key(1)})->stored_request, "POST / please");
  EXPECT_EQ(ask(Find{key(2)})->stored_request, "another request");
}

TEST_F(RunningRows, S02_cells_are_used_again) {
  pass(100);
  const std::string high = "SELECT coalesce(max(cell), 0) FROM idem_running";
  for (int number = 1; number <= 3; ++number) run(a_reserve(number));
  EXPECT_EQ(number(high), 3);
  ask(by_token(a_complete({key(2), {{}, token(1)}, {}})));
  run(a_reserve(4));
  EXPECT_EQ(number(high), 3) << "into the gap";
  ask(by_token(a_complete({key(1), {{}, token(1)}, {}})));
  reopen();
  run(a_reserve(5));
  EXPECT_EQ(number(high), 3) << "into a gap that a start has found";
  run(a_reserve(6));
  EXPECT_EQ(number(high), 4);
}

TEST_F(RunningRows, S02_many_pairs_leave_a_small_table) {
  pass(5'000);
  EXPECT_EQ(rows_in("running"), 0);
  EXPECT_LE(number("SELECT count(*) FROM dbstat WHERE name = 'running'"), 2);
  EXPECT_LE(number("PRAGMA freelist_count"), 300) << "what ran at once, and no more";
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

// ---- what cannot be read, or is there twice ----

TEST_F(RunningRows, T30_a_running_row_that_cannot_be_read_is_not_run_again) {
  run(a_reserve(1));
  sql("UPDATE idem_running SET record = substr(record, 1, 60)");
  expect_refused(1);
  run(a_reserve(2));
  EXPECT_EQ(ask(List{}).size(), 1u);
}

TEST_F(RunningRows, T30_a_settled_record_among_those_that_run_is_refused) {
  ask(a_complete(run(a_reserve(1))));
  sql("INSERT INTO idem_running SELECT 9, named(id), slot, record FROM idem_slots; DELETE FROM "
      "idem_slots");
  expect_refused(1);
}

TEST_F(RunningRows, T30_a_running_row_in_a_cell_that_is_none_of_ours_is_in_nobodys_way) {
  run(a_reserve(1));
  sql("UPDATE idem_running SET cell = 9223372036854775807");
  EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 2))));
  sql("UPDATE idem_running SET cell = -7");
  EXPECT_TRUE(is<InProgress>(ask(a_reserve(1, 2))));
  sql("UPDATE idem_running SET cell = 1000000000000");
  pass(100);
  EXPECT_EQ(ask(by_token(a_complete({key(1), {{}, token(1)}, {}}))).verdict, Verdict::done);
  EXPECT_EQ(rows_in("running"), 0);
}

TEST_F(RunningRows, T30_an_id_found_as_running_and_as_settled_is_refused_for_good) {
  ask(a_complete(run(a_reserve(1))));
  run(a_reserve(2));
  sql("INSERT INTO idem_running SELECT 9, named(s.id), 0, r.record FROM idem_slots s, idem_running "
      "r");
  expect_refused(1);
  EXPECT_TRUE(is<Unknown>(ask(a_reserve(2, 2)))) << "swept meanwhile, like any other";
}

TEST_F(RunningRows, T30_an_id_found_twice_blocks_no_other_record) {
  for (const int number : {1, 2}) {
    Accept accept = an_accept(number);
    accept.as.generation = 1;
    ASSERT_TRUE(is<Pending>(ask(accept)));
  }
  run(a_reserve(3));
  sql("INSERT INTO idem_running SELECT 9, named(s.id), 0, r.record FROM idem_slots s, idem_running "
      "r "
      "WHERE s.slot = 1");
  const Claim claim{token(50), "dispatcher", lease, true};
  EXPECT_FALSE(ask_and_wait(store(), claim)) << "the first is refused";
  const auto second = ask_and_wait(store(), claim);
  ASSERT_TRUE(second && *second);
  EXPECT_EQ((*second)->id, key(2));
  clock.advance(retention);
  std::size_t swept = 0;
  std::size_t damaged = 0;
  for (int round = 0; round < 4; ++round) {
    for (const LifecycleStep& step : ask(Sweep{1})) ++(step.damaged ? damaged : swept);
  }
  EXPECT_EQ(swept, 2u) << "those of 2 and 3";
  EXPECT_EQ(damaged, 1u) << "that of 1";
}

TEST_F(RunningRows, T30_an_id_found_twice_among_those_that_run_is_refused) {
  run(a_reserve(1));
  sql("INSERT INTO idem_running SELECT 2, id, slot, record FROM idem_running");
  expect_refused(1);
}

TEST_F(RunningRows, T30_a_number_that_two_records_have_is_refused_to_both) {
  for (const int number : {1, 2}) {
    Accept accept = an_accept(number);
    accept.as.generation = 1;
    ASSERT_TRUE(is<Pending>(ask(accept)));
    ASSERT_TRUE(ask(Claim{token(50), "dispatcher", lease, true}));
  }
  sql("UPDATE idem_running SET slot = 1");
  expect_refused(1);
  expect_refused(2);
}

TEST_F(RunningRows, T30_a_number_that_is_a_settled_records_is_refused) {
  ask(a_complete(run(a_reserve(1))));
  run(a_reserve(2));
  sql("UPDATE idem_running SET slot = 1");
  expect_refused(2);
  EXPECT_TRUE(is<Replay>(ask(a_reserve(1, 2))));
}

}  // namespace
}  // namespace idem::test
