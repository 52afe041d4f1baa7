#include "store_conformance/harness.hpp"

/// Protocol §2: how records get their names, and what may not change while there are some.
namespace idem::test {
namespace {

using Routes = std::vector<RouteName>;

const RouteName pay_route{{"POST"}, "/v1/payments", "pay", {}};
const RouteName charge{{"POST"}, "/v1/payments", "charge", {}};
const RouteName charge_formerly_pay{{"POST"}, "/v1/payments", "charge", {"pay"}};

class StoreIdentity : public StoreConformance {
 protected:
  AdoptRoutes::Reply adopt(Routes routes) { return ask(AdoptRoutes{std::move(routes)}); }

  /// A reserve as by the routes adopted last.
  Reserve a_reserve_of(std::uint64_t generation, int key_number, int token_number = 1) {
    Reserve verb = a_reserve(key_number, token_number);
    verb.generation = generation;
    return verb;
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, StoreIdentity, every_store(), name_of_store);

TEST_P(StoreIdentity, S02_a_table_that_loses_a_stored_operation_is_refused) {
  const auto first = adopt({pay_route});
  EXPECT_EQ(first.why_not, "");
  const Execute old = run(a_reserve_of(first.generation, 1));

  for (const Routes& routes :
       {Routes{charge}, Routes{}, Routes{{{}, "/v1/{rest...}", "", {}}, pay_route}}) {
    const auto refused = adopt(routes);
    EXPECT_NE(refused.why_not.find("operation \"pay\""), std::string::npos) << refused.why_not;
    EXPECT_EQ(refused.generation, first.generation);
  }
  EXPECT_TRUE(is<Execute>(ask(a_reserve_of(first.generation, 1)))) << "nothing has changed";

  const auto renamed = adopt({charge_formerly_pay});
  EXPECT_EQ(renamed.why_not, "");
  EXPECT_EQ(renamed.generation, first.generation + 1);
  Reserve retry = a_reserve_of(renamed.generation, 2, 2);
  retry.operation = "charge";
  retry.also = {{key(1)}};
  EXPECT_TRUE(is<InProgress>(ask(retry)));
  EXPECT_EQ(ask(a_complete(old)).verdict, Verdict::done) << "a running attempt is finished";
  EXPECT_TRUE(is<Replay>(ask(retry)));
  EXPECT_FALSE(find(2));
}

TEST_P(StoreIdentity, S02_a_new_table_refuses_the_reserves_of_the_one_before) {
  const auto first = adopt({pay_route});
  EXPECT_EQ(adopt({pay_route}), first) << "the same table is the same generation";
  const auto second = adopt({charge});
  EXPECT_EQ(second, (AdoptRoutes::Reply{first.generation + 1, ""})) << "the store is empty";
  const auto late = try_ask(a_reserve_of(first.generation, 1));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, StoreError::Code::refused);
  EXPECT_FALSE(find(1)) << "it must not commit any more";
  EXPECT_TRUE(is<Execute>(ask(a_reserve_of(second.generation, 1))));
}

TEST_P(StoreIdentity, S02_a_field_that_carried_keys_is_dropped_only_without_records) {
  const auto fields = [&](std::vector<std::string> names) {
    return ask(AdoptRoutes{{pay_route}, std::move(names)}).why_not;
  };
  EXPECT_EQ(fields({"Idempotency-Key"}), "");
  const auto before = ask(AdoptRoutes{{pay_route}, {"Idempotency-Key"}}).generation;
  EXPECT_EQ(fields({"X-Key"}), "") << "the store is empty";
  EXPECT_FALSE(try_ask(a_reserve_of(before, 2))) << "its retry would be without a key";
  EXPECT_FALSE(find(2));
  run(a_reserve_of(ask(AdoptRoutes{{pay_route}, {"X-Key"}}).generation, 1));
  EXPECT_NE(fields({"Idempotency-Key"}).find("X-Key"), std::string::npos);
  EXPECT_EQ(fields({"x-key", "Idempotency-Key"}), "");
  EXPECT_NE(fields({"x-key"}).find("Idempotency-Key"), std::string::npos);
}

TEST_P(StoreIdentity, S02_operations_without_a_name_are_found_by_a_pattern_of_formerly) {
  Reserve verb = a_reserve(1);
  verb.operation = "POST /v1/quotes/7";
  run(verb);
  RouteName quotes{{"POST"}, "/v1/quotes/{id}", "quotes", {"POST /v1/quotes/8"}};
  EXPECT_NE(adopt({quotes}).why_not, "");
  quotes.formerly = {"POST /v1/quotes/{id}"};
  EXPECT_EQ(adopt({quotes}).why_not, "");
}

TEST_P(StoreIdentity, S02_records_that_are_gone_hold_up_nothing) {
  const auto first = adopt({pay_route});
  Reserve verb = a_reserve_of(first.generation, 1);
  verb.tombstone = 0s;
  ask(a_complete(run(verb)));
  EXPECT_NE(adopt({charge}).why_not, "");
  clock.advance(retention);
  EXPECT_EQ(adopt({charge}).why_not, "") << "past its expiry, whether or not it was reaped";
}

TEST_P(StoreIdentity, S02_a_broken_table_is_refused_with_a_sentence) {
  const auto refused = adopt({{{}, "v1", "pay", {}}});
  EXPECT_NE(refused.why_not.find("\"v1\" is no path"), std::string::npos);
  EXPECT_EQ(adopt({pay_route}).generation, refused.generation + 1);
}

TEST_P(StoreIdentity, S02_the_adopted_table_outlives_the_process) {
  if (!is_durable()) return;  // There is nothing to outlive it.
  const auto first = adopt({pay_route, {{}, "/v1/{rest...}", "", {"a", "POST /b/{c}"}}});
  run(a_reserve_of(first.generation, 1));
  reopen();
  EXPECT_EQ(store().identity().generation, first.generation);
  EXPECT_EQ(adopt({pay_route, {{}, "/v1/{rest...}", "", {"a", "POST /b/{c}"}}}), first);
  EXPECT_NE(adopt({charge}).why_not, "");
}

// ---- other names: older secrets and former names ----

TEST_P(StoreIdentity, T47_a_record_under_an_older_secret_is_compared_by_that_secret) {
  const Execute old = run(1);
  ask(a_complete(old));
  Reserve retry = a_reserve(2, 2);
  retry.fingerprints = {body(7)};  // The same request under the new secret...
  retry.also = {{key(3), {body(8)}}, {key(1), {body(9), body(1)}}};  // ...and under older ones.
  EXPECT_TRUE(is<Replay>(ask(retry)));
  retry.also[1].fingerprints = {body(7)};
  EXPECT_TRUE(is<KeyMisuse>(ask(retry)));
  retry.also[1].fingerprints = {};
  EXPECT_TRUE(is<KeyMisuse>(ask(retry))) << "those of the reserve are of another secret";
  EXPECT_FALSE(find(2));
  Accept accept{retry, "POST / please"};
  accept.as.also[1].fingerprints = {body(1)};
  EXPECT_TRUE(is<Replay>(ask(accept)));
}

TEST_P(StoreIdentity, T47_a_run_under_an_older_secret_keeps_name_and_fingerprint) {
  ask(a_release(run(1)));
  Reserve retry = a_reserve(2, 2);
  retry.fingerprints = {body(7)};
  retry.also = {{key(1), {body(1)}}};
  const Execute again = run(retry);
  EXPECT_EQ(again.id, key(1));
  EXPECT_TRUE(same_fingerprint(find(1)->fingerprint, body(1)));
  EXPECT_FALSE(find(2));
}

TEST_P(StoreIdentity, S02_of_several_records_the_one_of_the_same_request_counts) {
  Reserve other = a_reserve(1);
  other.fingerprints = {body(2)};
  ask(a_complete(run(other)));
  ask(a_complete(run(2, 2)));
  Reserve retry = a_reserve(3, 3);
  retry.also = {{key(1)}, {key(2)}};
  EXPECT_TRUE(is<Replay>(ask(retry))) << "of body 1";
  retry.fingerprints = {body(3)};
  EXPECT_TRUE(is<KeyMisuse>(ask(retry)));
  EXPECT_FALSE(find(3));
}

}  // namespace
}  // namespace idem::test
