#include "store_conformance/postgres/asking.hpp"

#include <idem/transaction.hpp>

/// A schema that is dropped and made again under the connections of a running node (protocol.md
/// §2): its keys are not in the new store, and must not run in it a second time.
namespace idem::test {
namespace {

class PostgresOtherStore : public testing::Test {
 protected:
  PostgresOtherStore() : former_(open_by_uri(database_.uri())), session_(database_.uri()) {}

  /// Another store in the place of the first one, as a second gateway makes it.
  void replace() {
    session_.run("DROP SCHEMA idem CASCADE");
    other_ = open_by_uri(database_.uri());
  }
  std::string granted() {
    return session_.run("SELECT count(*) FROM idem.slots WHERE fence <> 0 OR request IS NOT NULL");
  }
  static std::string detail(const std::expected<ReserveOutcome, StoreError>& outcome) {
    return outcome ? describe(*outcome) : outcome.error().detail;
  }

  TestDatabase database_;
  std::unique_ptr<Store> former_;
  std::unique_ptr<Store> other_;
  Psql session_;
};

TEST_F(PostgresOtherStore, S02_no_reserve_of_the_former_store_is_granted_in_it) {
  for (int number = 1; number <= 3; ++number) run(*former_, number);  // Prepared, too.
  replace();
  EXPECT_NE(other_->identity().generation, former_->identity().generation);
  run(*other_, 1);
  for (int number = 1; number <= 4; ++number) {
    const auto outcome = try_ask(*former_, a_reserve(number, 2));
    ASSERT_FALSE(outcome) << describe(*outcome);
  }
  Accept accept = an_accept(5);
  accept.as.generation = former_->identity().generation;
  EXPECT_FALSE(ask_and_wait(*former_, accept));
  Reserve named = a_reserve_in(*former_, 6);
  named.also = {{key(7), {}}};
  EXPECT_FALSE(ask_and_wait(*former_, named));
  EXPECT_EQ(granted(), "1") << "the other store's own";
  const std::string why = detail(try_ask(*former_, a_reserve(8)));
  EXPECT_NE(why.find("another store"), std::string::npos) << why;
}

TEST_F(PostgresOtherStore, S17_no_transaction_of_a_service_is_admitted_in_it) {
  const auto ends_as = [&](int number) {
    InTransaction what;
    what.reserve = a_reserve_in(*former_, number);
    what.work = [](Transaction&, const RecordId& id, const Attempt& attempt) {
      return std::optional<StoreCall>(Complete{id, attempt, answer(201, "paid"), ""});
    };
    return former_->transactions()->run(std::move(what)).how;
  };
  EXPECT_EQ(ends_as(1), TransactionEnd::How::committed);
  replace();
  EXPECT_NE(ends_as(1), TransactionEnd::How::committed);
  EXPECT_NE(ends_as(2), TransactionEnd::How::committed);
  EXPECT_EQ(granted(), "0");
}

// Otherwise a reload of its routes would take the other store's generation.
TEST_F(PostgresOtherStore, S02_no_route_table_is_adopted_in_it) {
  const RouteName pay{{"POST"}, "/pay", "pay", {}};
  ASSERT_EQ(ask_and_wait(*former_, AdoptRoutes{{pay}, {}})->why_not, "");
  replace();
  const auto adopted = ask_and_wait(*former_, AdoptRoutes{{pay}, {}});
  EXPECT_TRUE(!adopted || !adopted->why_not.empty());
  EXPECT_EQ(session_.run("SELECT count(*) FROM idem.route_names"), "0");
}

TEST_F(PostgresOtherStore, S02_a_node_without_its_schema_serves_nothing_and_finds_no_other_store) {
  run(*former_, 1);
  session_.run("DROP SCHEMA idem CASCADE");
  EXPECT_FALSE(try_ask(*former_, a_reserve(2)));
  EXPECT_FALSE(ask_and_wait(*former_, Find{key(1)}));
  other_ = open_by_uri(database_.uri());
  const auto until = MonotonicClock::now() + std::chrono::seconds(30);
  std::string why;
  while (why.find("another store") == std::string::npos) {
    ASSERT_LT(MonotonicClock::now(), until) << why;
    why = detail(try_ask(*former_, a_reserve(3)));
  }
  EXPECT_FALSE(ask_and_wait(*former_, Find{key(1)})) << "nor do its other connections go on";
  EXPECT_EQ(granted(), "0");
}

}  // namespace
}  // namespace idem::test
