#include "store/postgres/postgres_store.hpp"
#include "store_conformance/transacting.hpp"

#include <idem/fingerprint.hpp>
#include <idem/limits.hpp>
#include <idem/postgres.hpp>

#include <libpq-fe.h>

#include <functional>

/// What one transaction of a service leaves in its session must not reach the next one: settings,
/// and statements that were prepared when tables looked otherwise.
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
    // What answers rows is not: of `SELECT *` they may look otherwise the next time.
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
    // Nobody's word for it: it is found out, and another session taken.
    commits([&](Transaction& transaction) {
      by_libpq(transaction, "PREPARE mine AS SELECT 1; DEALLOCATE ALL");
    });
    commits(pays_text(name(5)));
  }
  EXPECT_EQ(in_database("SELECT count(*) FROM payments"), "18");
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
