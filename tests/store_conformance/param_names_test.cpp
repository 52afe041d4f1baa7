#include "store/postgres/param_names.hpp"

#include <gtest/gtest.h>

/// The parameters that a statement names, as PostgreSQL reads it.
namespace idem::test {
namespace {

using Numbers = std::set<std::size_t>;

TEST(ParamNames, S17_are_found_outside_of_texts_names_and_comments) {
  const auto named = postgres::params_named;
  EXPECT_EQ(named("SELECT $1, $2 + $1, $12"), (Numbers{1, 2, 12}));
  EXPECT_EQ(named("SELECT 1"), Numbers{});
  EXPECT_EQ(named("SELECT '$1', $2"), Numbers{2});
  EXPECT_EQ(named("SELECT 'it''s $1', $2"), Numbers{2});
  EXPECT_EQ(named("SELECT '\\', $1, '$2'"), Numbers{1}) << "no escape in a plain text";
  EXPECT_EQ(named("SELECT E'\\'$1', $2"), Numbers{2});
  EXPECT_EQ(named("SELECT E'a''\\'$1', $2"), Numbers{2});
  EXPECT_EQ(named("SELECT \"$1\", $2"), Numbers{2});
  EXPECT_EQ(named("SELECT 1 -- $1\n, $2"), Numbers{2});
  EXPECT_EQ(named("SELECT 1 /* $1 /* $3 */ $4 */, $2"), Numbers{2});
  EXPECT_EQ(named("SELECT $$ $1 $$, $2"), Numbers{2});
  EXPECT_EQ(named("SELECT $tag$ $1 $$ $tag$, $2"), Numbers{2});
  EXPECT_EQ(named("SELECT a$1, $2"), Numbers{2}) << "a name may have a dollar in it";
  EXPECT_EQ(named("SELECT $1::text[], ($2)[1]"), (Numbers{1, 2}));
}

TEST(ParamNames, S17_an_end_in_the_middle_ends_the_search) {
  for (const char* sql :
       {"SELECT '$1", "SELECT \"$1", "SELECT $a$ $1", "/* $1", "SELECT $", "E'\\"}) {
    EXPECT_EQ(postgres::params_named(sql), Numbers{}) << sql;
  }
  EXPECT_EQ(postgres::params_named("$99999999999999999999"), Numbers{});
}

}  // namespace
}  // namespace idem::test
