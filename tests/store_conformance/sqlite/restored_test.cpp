#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/harness.hpp"

#include <sqlite3.h>

/// A store that was made of a backup trusts nothing that was open in it: it may have run since.
namespace idem::test {
namespace {

class SqliteRestored : public testing::Test {
 protected:
  std::unique_ptr<Store> open(bool restored = false) {
    auto opened = open_sqlite(folder_.file("idem.db"), test_settings(),
                              {.host = clock_.host(), .restored = restored});
    EXPECT_TRUE(opened) << opened.error().detail;
    return opened ? std::move(*opened) : nullptr;
  }
  static Execute run(Store& store, int number, bool dispatched = true) {
    Reserve verb = a_reserve(number);
    verb.generation = store.identity().generation;
    verb.dispatched = dispatched;
    verb.lease_policy = LeasePolicy::rerun;
    const auto outcome = ask_and_wait(store, verb);
    EXPECT_TRUE(outcome && is<Execute>(*outcome));
    return std::get<Execute>(*outcome);
  }
  static Record find(Store& store, int number) {
    const auto found = ask_and_wait(store, Find{key(number)});
    EXPECT_TRUE(found && *found) << number;
    return found && *found ? **found : Record{};
  }
  std::string sql(const std::string& text) {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(folder_.file("idem.db").c_str(), &db), SQLITE_OK);
    std::string first;
    const auto keep = [](void* kept, int columns, char** values, char**) {
      for (int i = 0; i < columns; ++i) {
        *static_cast<std::string*>(kept) +=
            std::string(values[i] != nullptr ? values[i] : "") + "|";
      }
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(db, text.c_str(), keep, &first, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db);
    sqlite3_close(db);
    return first;
  }

  TempFolder folder_;
  TestClock clock_;
};

TEST_F(SqliteRestored, every_open_record_becomes_unknown_and_no_fence_comes_twice) {
  Fence running = 0;
  Fence released = 0;
  {
    const auto store = open();
    running = run(*store, 1, false).attempt.fence;
    const Execute second = run(*store, 2);
    released = second.attempt.fence;
    ASSERT_TRUE(ask_and_wait(*store, a_release(second)));
    Accept stored = an_accept(3);
    stored.as.generation = store->identity().generation;
    ASSERT_TRUE(ask_and_wait(*store, stored));
    ASSERT_TRUE(ask_and_wait(*store, a_mark_unknown(run(*store, 4))));
    ASSERT_TRUE(ask_and_wait(*store, a_complete(run(*store, 5))));
  }
  // Past the retention, the released record counts as none; a later attempt may have run.
  clock_.advance(retention + Millis(1));
  const auto store = open(true);
  for (const int number : {1, 2, 3, 4}) {
    EXPECT_EQ(find(*store, number).state, State::unknown) << number;
    Reserve verb = a_reserve(number, 9);
    verb.generation = store->identity().generation;
    const auto retry = ask_and_wait(*store, verb);
    EXPECT_TRUE(retry && is<Unknown>(*retry)) << number;
  }
  constexpr Fence gap = Fence{1} << 40;
  EXPECT_EQ(find(*store, 1).fence(), running) << "evidence about this attempt still counts";
  EXPECT_GT(find(*store, 2).fence().value_or(0), released + gap);
  EXPECT_GT(find(*store, 3).fence().value_or(0), gap);
  EXPECT_EQ(find(*store, 3).last_error_code, "store_restored");
  EXPECT_FALSE(find(*store, 3).reconcile_after) << "there is no provider to ask";
  EXPECT_EQ(find(*store, 5).state, State::expired);
  EXPECT_GT(run(*store, 6).attempt.fence, gap);
  const auto log = ask_and_wait(*store, ReadEvidence{key(2)});
  ASSERT_TRUE(log && log->size() == 1);
  EXPECT_EQ(log->front().source, "restore");
  EXPECT_EQ(log->front().after, State::unknown);
  // Negative evidence from before the restore says nothing of what came since.
  Resolve early = a_resolve(2, Resolve::As::failed_retryable, find(*store, 2).fence(), {});
  early.observed_at = log->front().recorded_at - Millis(1);
  early.grace = Millis(0);
  const auto verdict = ask_and_wait(*store, early);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->verdict, Resolve::Verdict::too_early);
  const auto census = ask_and_wait(*store, Count{});
  ASSERT_TRUE(census);
  EXPECT_EQ(census->by_state[static_cast<std::size_t>(State::unknown)], 4U);
}

TEST_F(SqliteRestored, a_message_may_have_arrived) {
  open();
  sql("INSERT INTO idem_outbox (id, aggregatetype, aggregateid, type, payload, content_type,"
      " destination, operation, created_at, due_at, state) VALUES"
      " ('m1', '', '', 't', 'p', 'c', 'd', 'o', 1, 1, 'waiting'),"
      " ('m2', '', '', 't', 'p', 'c', 'd', 'o', 1, 1, 'delivered')");
  open(true);
  EXPECT_EQ(sql("SELECT ambiguous, first_at, repeat_until, no_call_in_flight_since > 0"
                " FROM idem_outbox ORDER BY id"),
            "1|0|0|1|0||||");
}

}  // namespace
}  // namespace idem::test
