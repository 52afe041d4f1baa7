#include "store/postgres/postgres_store.hpp"
#include "store_conformance/transacting.hpp"

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>
#include <idem/postgres.hpp>

#include <libpq-fe.h>

#include <functional>

/// One transaction of a service must leave nothing in its session for the next one: no settings,
/// no statements that were prepared when tables looked otherwise.
namespace idem::test {
namespace {

using How = TransactionEnd::How;

class TransactionSessions : public testing::TestWithParam<bool> {
 protected:
  TransactionSessions() {
    auto store =
        open_postgres(GetParam() ? database_.pooled_uri() : database_.uri(), test_settings(), {});
    if (!store) std::abort();
    store_ = std::move(*store);
    EXPECT_TRUE(store_->transactions()->run(payments_table).has_value());
  }

  using Work = std::function<void(Transaction&)>;
  /// One after the other, so that all of them have the same session.
  TransactionEnd does(const Work& work) {
    Reserve verb = a_reserve(1);
    random_bytes(verb.id.bytes);
    verb.generation = store_->identity().generation;
    return store_->transactions()->run(
        {verb,
         {},
         {},
         [&](Transaction& transaction, auto& id, auto& of) -> std::optional<StoreCall> {
           work(transaction);
           return Complete{id, of, answer(), ""};
         }});
  }
  void commits(const Work& work) {
    const auto end = does(work);
    EXPECT_EQ(end.how, How::committed) << end.why;
  }
  static void by_libpq(Transaction& transaction, const char* script) {
    PQclear(PQexec(postgres_connection(transaction), script));
  }
  /// Of the session that the transaction is in.
  static std::int64_t prepared(Transaction& transaction) {
    const auto rows = transaction.run(
        "SELECT count(*) FROM pg_prepared_statements WHERE name NOT LIKE 'idem\\_% %'");
    return rows.empty() ? -1 : std::get<std::int64_t>(rows.front().front());
  }
  static auto pays_text(const std::string& id) {
    return [id](Transaction& transaction) {
      transaction.run("INSERT INTO payments VALUES ($1, $2)", {id, std::int64_t{1}});
    };
  }
  std::string in_database(const std::string& sql) { return Psql(database_.uri()).run(sql); }

  TestDatabase database_;
  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(Ways, TransactionSessions, testing::Values(false, true),
                         [](const auto& way) { return way.param ? "pooled" : "direct"; });

TEST_P(TransactionSessions, S17_settings_of_one_work_are_not_the_next_ones) {
  commits([&](Transaction& transaction) {
    transaction.run("SELECT set_config('idem_test.tenant', 'acme', false)");
    transaction.run("SET statement_timeout = '17s'");
    transaction.run(
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY, ISOLATION LEVEL"
        " SERIALIZABLE");
    transaction.run("SET synchronous_commit = off");
  });
  commits([&](Transaction& transaction) {
    const auto rows = transaction.run(
        "SELECT coalesce(current_setting('idem_test.tenant', true), ''),"
        " current_setting('statement_timeout'), current_setting('transaction_read_only'),"
        " current_setting('transaction_isolation'), current_setting('synchronous_commit'),"
        " current_setting('lock_timeout')");
    ASSERT_EQ(rows.size(), 1U);
    const SqlRow fresh{"", "0", "off", "read committed", "on", "2s"};
    EXPECT_TRUE(rows.front() == fresh);
    pays_text("after")(transaction);
  });
  EXPECT_EQ(in_database("SELECT count(*) FROM payments"), "1");
}

TEST_P(TransactionSessions, S17_a_statement_is_prepared_from_its_second_time_and_not_for_a_pooler) {
  for (int i = 0; i < 3; ++i) commits(pays_text(std::to_string(i)));
  commits([](Transaction& transaction) {
    EXPECT_EQ(prepared(transaction), GetParam() ? 0 : 1);
    // A statement that answers rows is not: `SELECT *` may answer other columns the next time.
    for (int i = 0; i < 3; ++i) EXPECT_EQ(transaction.run("SELECT * FROM payments").size(), 3U);
    EXPECT_EQ(prepared(transaction), GetParam() ? 0 : 1);
  });
  in_database("ALTER TABLE payments ADD note TEXT");
  commits([](Transaction& transaction) {
    const auto rows = transaction.run("SELECT * FROM payments");
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_EQ(rows.front().size(), 3U);
  });
  EXPECT_EQ(in_database("SELECT count(*) FROM payments"), "3");
}

TEST_P(TransactionSessions, S17_the_same_text_with_values_of_other_types_is_another_statement) {
  in_database("CREATE TABLE kept (v TEXT)");
  for (int round = 0; round < 3; ++round) {
    commits([&](Transaction& transaction) {
      for (const SqlValue& value : {SqlValue("text"), SqlValue(std::int64_t{7}), SqlValue(0.5),
                                    SqlValue(std::monostate())}) {
        transaction.run("INSERT INTO kept VALUES ($1)", std::span(&value, 1));
      }
    });
  }
  EXPECT_EQ(in_database("SELECT string_agg(DISTINCT coalesce(v, '-'), ' ' ORDER BY"
                        " coalesce(v, '-')) || count(*) FROM kept"),
            "- 0.5 7 text12");
}

TEST_P(TransactionSessions, S17_a_column_that_changed_its_type_costs_one_transaction_at_most) {
  in_database("CREATE TABLE kept (v INTEGER)");
  const auto keeps = [](Transaction& transaction) {
    transaction.run("INSERT INTO kept VALUES ($1)", {"3000000"});
  };
  for (int i = 0; i < 3; ++i) commits(keeps);
  in_database("ALTER TABLE kept ALTER v TYPE UUID USING NULL");
  const auto one = [](Transaction& transaction) {
    transaction.run("INSERT INTO kept VALUES ($1)", {"11111111-1111-1111-1111-111111111111"});
  };
  const auto first = does(one);
  EXPECT_TRUE(first.how == How::committed || first.how == How::rolled_back);
  EXPECT_EQ(first.how == How::committed, GetParam());
  commits(one);
  commits(one);
}

TEST_P(TransactionSessions, S17_a_table_of_the_works_own_is_the_one_that_it_writes_to) {
  const auto shadows = [](Transaction& transaction) {
    transaction.run("CREATE TEMP TABLE payments (id TEXT, amount INTEGER) ON COMMIT DROP");
    pays_text("temporary")(transaction);
  };
  commits(shadows);
  for (int i = 0; i < 3; ++i) commits(pays_text(std::to_string(i)));
  commits(shadows);
  commits([](Transaction& transaction) {
    transaction.run("SELECT id, amount INTO TEMP payments FROM payments");
    pays_text("temporary")(transaction);
    transaction.run("DROP TABLE pg_temp.payments");
  });
  EXPECT_EQ(in_database("SELECT string_agg(id, ' ' ORDER BY id) FROM payments"), "0 1 2");
}

TEST_P(TransactionSessions, S17_work_may_deallocate_all_that_is_prepared) {
  for (int round = 0; round < 3; ++round) {
    const auto name = [&](int i) { return std::to_string(10 * round + i); };
    for (int i = 0; i < 3; ++i) commits(pays_text(name(i)));
    commits([&](Transaction& transaction) {
      transaction.run("DEALLOCATE ALL");
      pays_text(name(3))(transaction);
    });
    commits([&](Transaction& transaction) {
      by_libpq(transaction, "DEALLOCATE ALL");
      pays_text(name(4))(transaction);
    });
    // No reply says so: the store finds out, and uses another session.
    commits([&](Transaction& transaction) {
      by_libpq(transaction, "PREPARE mine AS SELECT 1; DEALLOCATE ALL");
    });
    commits(pays_text(name(5)));
  }
  EXPECT_EQ(in_database("SELECT count(*) FROM payments"), "18");
}

// In one commit the record is written with its answer, unless something may look for it before.
TEST_P(TransactionSessions, S17_work_that_asks_for_its_record_finds_it) {
  const auto state_of = [](Transaction& transaction, const RecordId& id) {
    const auto rows = transaction.run("SELECT state FROM Idem.find($1)", {to_hex(id.bytes)});
    return rows.empty() ? std::string("none") : std::get<std::string>(rows.front().front());
  };
  Reserve verb = a_reserve(1);
  verb.generation = store_->identity().generation;
  const auto end = store_->transactions()->run(
      {verb, {}, {}, [&](Transaction& transaction, auto& id, auto& of) -> std::optional<StoreCall> {
         EXPECT_EQ(state_of(transaction, id), "in_progress");
         const auto done = complete_on(postgres_connection(transaction), id, of, answer());
         EXPECT_TRUE(done.has_value()) << done.error().message;
         EXPECT_EQ(state_of(transaction, id), "completed");
         return Complete{id, of, answer(), ""};
       }});
  // It has ended by another way than ours.
  EXPECT_EQ(end.how, How::superseded) << end.why;
  EXPECT_FALSE(ask_and_wait(*store_, Find{key(1)})->has_value());
}

TEST_P(TransactionSessions, S17_a_record_made_late_is_the_one_that_was_reserved) {
  const auto record_after = [&](int number, bool is_made_early) {
    Reserve verb = a_reserve(number);
    verb.generation = store_->identity().generation;
    verb.lease_policy = LeasePolicy::rerun;
    const auto end = store_->transactions()->run(
        {verb,
         {},
         {},
         [&](Transaction& transaction, auto& id, auto& of) -> std::optional<StoreCall> {
           if (is_made_early) (void)transaction.native();
           return Complete{id, of, answer(200, std::string(number % 2 == 0 ? 5'000 : 5, 'x')), "r"};
         }});
    EXPECT_EQ(end.how, How::committed) << end.why;
    auto record = **ask_and_wait(*store_, Find{key(number)});
    EXPECT_EQ(record.expires_at, end.reply.expires_at);
    EXPECT_EQ(record.expires_at, *record.completed_at + retention);
    EXPECT_EQ(record.tombstone_until, *record.expires_at + tombstone);
    EXPECT_LE(record.created_at, *record.completed_at);
    EXPECT_GT(record.fence(), 0U);
    EXPECT_EQ(record.attempt.value_or(Attempt{}).token, verb.token);
    // This differs between any two.
    record.id = {};
    record.attempt.reset();
    record.created_at = record.changed_at = StoreTime{};
    record.completed_at = record.expires_at = record.tombstone_until = std::nullopt;
    return describe(std::optional(record));
  };
  EXPECT_EQ(record_after(1, false), record_after(3, true));
  EXPECT_EQ(record_after(2, false), record_after(4, true));
  EXPECT_EQ(in_database("SELECT count(*) FROM idem.lease_due_batches"), "2");
  EXPECT_EQ(in_database("SELECT count(*) FROM idem.expiry_due_batches"), "4");
}

TEST_P(TransactionSessions, S17_a_phase_in_the_transaction_of_its_reserve_leaves_a_running_record) {
  Reserve verb = a_reserve(1);
  verb.generation = store_->identity().generation;
  const auto end = store_->transactions()->run(
      {verb, {}, {}, [](Transaction& transaction, auto& id, auto& of) -> std::optional<StoreCall> {
         pay(transaction, "p", id, of);
         return Advance{id, of, "charged"};
       }});
  EXPECT_EQ(end.how, How::committed) << end.why;
  const auto record = **ask_and_wait(*store_, Find{key(1)});
  EXPECT_EQ(record.state, State::in_progress);
  EXPECT_EQ(record.recovery_point, "charged");
  EXPECT_EQ(record.locked_until, record.created_at + lease);
  EXPECT_EQ(in_database("SELECT count(*) FROM idem.lease_due_batches"), "1");
}

// The worst that a work can do: it dooms the transaction, and commits it by itself.
TEST_P(TransactionSessions, S17_rows_that_a_doomed_work_commits_do_not_stand_without_a_record) {
  Reserve verb = a_reserve(1);
  verb.generation = store_->identity().generation;
  const auto end = store_->transactions()->run(
      {verb, {}, {}, [](Transaction& transaction, auto& id, auto& of) -> std::optional<StoreCall> {
         auto step = pay(transaction, "p", id, of);
         transaction.fail("and yet");
         by_libpq(transaction, "COMMIT");
         return step;
       }});
  EXPECT_EQ(end.how, How::in_doubt);
  EXPECT_TRUE(end.rows_may_be_committed);
  verb.token = token(2);
  EXPECT_TRUE(is<Unknown>(*ask_and_wait(*store_, verb)));
}

// Of two, one waits for nobody, and gets "in progress"; it sees nothing of the other.
TEST_P(TransactionSessions, S05_a_key_whose_record_is_not_written_yet_is_nobody_elses) {
  Reserve verb = a_reserve(1);
  verb.generation = store_->identity().generation;
  const auto end = store_->transactions()->run(
      {verb, {}, {}, [&](Transaction& transaction, auto& id, auto& of) -> std::optional<StoreCall> {
         Reserve other = verb;
         other.token = token(2);
         const auto outcome = ask_and_wait(*store_, other);
         EXPECT_TRUE(outcome && is<InProgress>(*outcome));
         EXPECT_FALSE(ask_and_wait(*store_, Find{id})->has_value());
         return pay(transaction, "p", id, of);
       }});
  EXPECT_EQ(end.how, How::committed) << end.why;
  verb.token = token(3);
  EXPECT_TRUE(is<Replay>(*ask_and_wait(*store_, verb)));
}

TEST_P(TransactionSessions, S17_texts_with_values_in_them_fill_no_server) {
  for (int i = 0; i < 2 * static_cast<int>(limits::service_statements_max); ++i) {
    commits([&](Transaction& transaction) {
      const std::string text = "UPDATE payments SET amount = " + std::to_string(i);
      transaction.run(text);
      transaction.run(text);
    });
  }
  commits([](Transaction& transaction) {
    EXPECT_LE(prepared(transaction), static_cast<std::int64_t>(limits::service_statements_max));
  });
}

}  // namespace
}  // namespace idem::test
