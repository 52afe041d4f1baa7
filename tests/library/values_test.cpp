#include "library/guarded.hpp"

/// Values into statements and out of them: the same on both databases.
namespace idem::test {
namespace {

using Values = Guarded;

INSTANTIATE_TEST_SUITE_P(Stores, Values, testing::Values("sqlite", "postgres"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Values, S17_booleans_and_views_of_texts_are_bound_with_their_types) {
  Transactions& transactions = *engine_->transactions();
  ASSERT_TRUE(transactions.run("CREATE TABLE switches (name TEXT, is_on BOOLEAN)"));
  const std::string text = "a|b";
  const std::string_view name = std::string_view(text).substr(2);
  ASSERT_TRUE(transactions.run("INSERT INTO switches VALUES ($1, $2)", {name, true}));
  ASSERT_TRUE(transactions.run("INSERT INTO switches VALUES ('c', $1)", {false}));
  const auto rows = transactions.run("SELECT name, is_on FROM switches ORDER BY name");
  ASSERT_TRUE(rows) << rows.error();
  const SqlRows expected{{"b", std::int64_t{1}}, {"c", std::int64_t{0}}};
  EXPECT_EQ(*rows, expected);
  const auto on = transactions.run("SELECT name FROM switches WHERE is_on = $1", {true});
  ASSERT_TRUE(on) << on.error();
  EXPECT_EQ(on->size(), 1U);
}

TEST_P(Values, S17_sums_are_numbers) {
  Transactions& transactions = *engine_->transactions();
  ASSERT_TRUE(transactions.run("CREATE TABLE entries (cents BIGINT)"));
  ASSERT_TRUE(transactions.run("INSERT INTO entries VALUES ($1), ($2)",
                               {std::int64_t{9'007'199'254'740'993}, std::int64_t{-1}}));
  const auto sum = transactions.run("SELECT sum(cents), count(*) FROM entries");
  ASSERT_TRUE(sum) << sum.error();
  const SqlRows expected{{std::int64_t{9'007'199'254'740'992}, std::int64_t{2}}};
  EXPECT_EQ(*sum, expected);
}

TEST_P(Values, S17_a_value_that_no_statement_names_is_refused_as_a_name_without_a_value_is) {
  Transactions& transactions = *engine_->transactions();
  const SqlValue one = std::int64_t{1};
  const auto surplus = transactions.run("SELECT $1 + 1", {one, one});
  ASSERT_FALSE(surplus);
  EXPECT_EQ(surplus.error(),
            "the statement does not name value 2 of 2: write $2 in it, or leave the value out");
  const auto missing = transactions.run("SELECT $1 + $2", {one});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error(), "no value for the parameter $2: 1 value was given");
  const auto quoted = transactions.run("SELECT '$2', $1 /* $3 */", {one});
  EXPECT_TRUE(quoted) << quoted.error();
  const auto answer = serve(payment("k"), [&](Transaction& tx) -> Outcome {
    tx.run("INSERT INTO payments VALUES ('p', $1)", {one, "more"});
    return Response{201, {}, tx.failure()};
  });
  EXPECT_EQ(answer.status, 500) << answer.body;
  EXPECT_EQ(payments(), 0);
}

}  // namespace
}  // namespace idem::test
