#include "core/naming/copied_identity.hpp"
#include "store/dynamodb/dynamodb_store.hpp"
#include "store/log/log_store.hpp"
#include "store/mysql/mysql_store.hpp"
#include "store/postgres/postgres_store.hpp"
#include "store/redis/redis_store.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store_conformance/asking.hpp"
#include "support/dynamodb.hpp"
#include "support/redis.hpp"

#include <idem/fingerprint.hpp>

#include <poll.h>

/// What names the records goes to a copy, and its mark keeps all others away: from the copy until
/// it is whole, and from the source from then on.
namespace idem::test {
namespace {

using Opening = CopiedIdentity::Opening;
using OpenResult = std::expected<std::unique_ptr<Store>, StoreError>;

const std::vector<RouteName> copied_routes{{{"POST"}, "/v1/payments", "pay", {"charge"}}};
const std::vector<RouteName> renamed_routes{{{"POST"}, "/v1/payments", "payment", {}}};

class CopiedIdentityConformance : public testing::TestWithParam<std::string> {
 protected:
  bool is_file() const { return GetParam() == "sqlite" || GetParam() == "embedded"; }

  /// A start, or an opening of a copy.
  OpenResult open(const std::string& name, std::shared_ptr<CopiedIdentity> copied = {},
                  bool make = true) {
    const WhichStore which{.make = make && (!copied || copied->opening == Opening::begin),
                           .copied = copied};
    const IdentitySettings settings = copied ? IdentitySettings{} : test_settings();
    if (GetParam() == "sqlite") return open_sqlite(folder_.file(name), settings, {.which = which});
    if (GetParam() == "embedded") return open_log(folder_.file(name), settings, {.which = which});
    if (GetParam() == "postgres") {
      auto& database = databases_[name];
      if (!database) database = std::make_unique<TestDatabase>(TestDatabase::With::schema);
      return open_postgres(database->uri(), settings, {.which = which});
    }
    if (GetParam() == "mysql") {
      auto& database = mysql_databases_[name];
      if (!database) database = std::make_unique<TestMysqlDatabase>();
      return open_mysql(database->url(), settings, {.which = which});
    }
    auto& place = places_[name];
    if (GetParam() == "redis") {
      if (place.empty()) place = new_redis_prefix();
      return open_redis("redis://" + shared_redis_address() + "/?prefix=" + place, settings,
                        {.which = which});
    }
    if (place.empty()) place = new_dynamodb_table();
    return open_dynamodb(dynamodb_url(shared_dynamodb_endpoint(), place), settings,
                         {.which = which,
                          .waits = {.identity_lease = std::chrono::milliseconds(100),
                                    .change = std::chrono::milliseconds(300)}});
  }
  std::unique_ptr<Store> opened(const std::string& name,
                                std::shared_ptr<CopiedIdentity> copied = {}) {
    auto store = open(name, std::move(copied));
    EXPECT_TRUE(store) << store.error().detail;
    return store ? std::move(*store) : nullptr;
  }
  void expect_refused(const std::string& name, std::string_view why,
                      std::shared_ptr<CopiedIdentity> copied = {}) {
    const auto store = open(name, std::move(copied));
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().code, StoreError::Code::refused);
    EXPECT_NE(store.error().detail.find(why), std::string::npos) << store.error().detail;
  }
  static std::shared_ptr<CopiedIdentity> now(const std::shared_ptr<CopiedIdentity>& copied,
                                             Opening opening) {
    copied->opening = opening;
    return copied;
  }
  static AdoptRoutes::Reply adopt(Store& store, std::vector<RouteName> routes) {
    return *test::try_ask(store, AdoptRoutes{std::move(routes), {"Idempotency-Key"}});
  }
  static Reserve reserve_in(std::uint64_t generation, int number) {
    Reserve verb = a_reserve(number, number);
    verb.generation = generation;
    return verb;
  }

  TempFolder folder_;
  std::map<std::string, std::unique_ptr<TestDatabase>> databases_;
  std::map<std::string, std::unique_ptr<TestMysqlDatabase>> mysql_databases_;
  std::map<std::string, std::string> places_;
};

INSTANTIATE_TEST_SUITE_P(Stores, CopiedIdentityConformance,
                         testing::Values("sqlite", "embedded", "postgres", "mysql", "redis",
                                         "dynamodb"),
                         [](const auto& kind) { return kind.param; });

TEST_P(CopiedIdentityConformance, S02_a_copy_names_its_records_as_the_source_did) {
  auto source = opened("source");
  const auto generation = adopt(*source, copied_routes).generation;
  auto outcome = ask_and_wait(*source, reserve_in(generation, 1));
  ASSERT_TRUE(outcome && is<Execute>(*outcome));
  ASSERT_TRUE(test::try_ask(*source, a_complete(std::get<Execute>(*outcome))));
  const Secret secret = source->identity().secret;
  const Secret scope_secret = source->identity().scope_secret;
  source.reset();

  const auto copied = std::make_shared<CopiedIdentity>();
  source = opened("source", now(copied, Opening::read));
  const auto record = *test::try_ask(*source, Find{key(1)});
  copied->run = 7;
  auto target = opened("target", now(copied, Opening::begin));
  EXPECT_TRUE(test::try_ask(*target, PutRecord{.id = key(1), .record = record})->put);
  target.reset();
  expect_refused("target", "unfinished copy");
  copied->target_id = "11111111-2222-3333-4444-555555555555";
  source.reset();
  source = opened("source", now(copied, Opening::close));
  source.reset();
  expect_refused("source", "were copied to the store 11111111-2222-3333-4444-555555555555");
  target = opened("target", now(copied, Opening::end));
  target.reset();
  expect_refused("target", "a store of its own", now(copied, Opening::begin));

  target = opened("target");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->identity().secret, secret);
  EXPECT_EQ(target->identity().scope_secret, scope_secret);
  EXPECT_EQ(adopt(*target, copied_routes), (AdoptRoutes::Reply{generation, ""}))
      << "the same table";
  EXPECT_NE(adopt(*target, renamed_routes).why_not, "") << "its record would not be found any more";
  outcome = ask_and_wait(*target, reserve_in(generation, 1));
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(is<Replay>(*outcome)) << describe(*outcome);
}

TEST_P(CopiedIdentityConformance, of_two_runs_the_later_one_goes_on) {
  opened("source").reset();
  const auto first = std::make_shared<CopiedIdentity>();
  opened("source", now(first, Opening::read)).reset();
  const auto second = std::make_shared<CopiedIdentity>(*first);
  first->run = 7;
  second->run = 9;
  auto early = opened("target", now(first, Opening::begin));
  EXPECT_TRUE(test::try_ask(*early, PutRecord{.id = key(1)})->put);
  if (is_file()) early.reset();
  auto late = opened("target", now(second, Opening::begin));
  if (early) {
    const auto put = test::try_ask(*early, PutRecord{.id = key(1)});
    ASSERT_FALSE(put);
    EXPECT_EQ(put.error().code, StoreError::Code::refused) << put.error().detail;
  }
  early.reset();
  EXPECT_TRUE(test::try_ask(*late, PutRecord{.id = key(1)})->put);
  late.reset();
  expect_refused("target", "another idem store copy", now(first, Opening::end));
  opened("target", now(second, Opening::end)).reset();
  EXPECT_TRUE(opened("target"));
  const auto other = std::make_shared<CopiedIdentity>();
  opened("other").reset();
  opened("other", now(other, Opening::read)).reset();
  other->run = 11;
  opened("next", now(second, Opening::begin)).reset();
  expect_refused("next", "the unfinished copy of another store", now(other, Opening::begin));
}

TEST_P(CopiedIdentityConformance, a_closed_source_begins_no_work_and_is_closed_for_one_copy) {
  auto running = opened("source");
  const auto generation = running->identity().generation;
  Accept accept = an_accept(2);
  accept.as.generation = generation;
  ASSERT_TRUE(ask_and_wait(*running, accept));
  auto outcome = ask_and_wait(*running, reserve_in(generation, 1));
  ASSERT_TRUE(outcome && is<Execute>(*outcome));
  const Execute attempt = std::get<Execute>(*outcome);
  if (is_file()) running.reset();
  const auto copied = std::make_shared<CopiedIdentity>();
  auto source = opened("source", now(copied, Opening::read));
  source.reset();
  // What changes before the close goes with it.
  const bool is_adopted = running && adopt(*running, copied_routes).why_not.empty();
  const auto changed = generation + (is_adopted ? 1 : 0);
  copied->target_id = "first";
  source = opened("source", now(copied, Opening::close));
  EXPECT_EQ(copied->recorded.generation, changed);
  EXPECT_EQ(copied->recorded.key_scope, "operation");
  if (running) {
    for (const auto of : {generation, changed}) {
      EXPECT_FALSE(ask_and_wait(*running, reserve_in(of, 3))) << of;
    }
    const auto claimed = ask_and_wait(*running, Claim{token(50), "dispatcher", lease, true});
    EXPECT_FALSE(claimed && *claimed);
    EXPECT_NE(adopt(*running, renamed_routes).why_not.find("copied to the store first"),
              std::string::npos);
    EXPECT_EQ(test::try_ask(*running, a_complete(attempt))->verdict, Verdict::done)
        << "what began before is ended";
  }
  EXPECT_FALSE(*test::try_ask(*source, Find{key(3)}));
  EXPECT_EQ((*test::try_ask(*source, Find{key(2)}))->state, State::pending);
  source.reset();
  opened("source", now(copied, Opening::close)).reset();
  EXPECT_EQ(copied->closed_for, "first");
  EXPECT_EQ(copied->recorded.generation, changed) << "it is closed once";

  const auto another = std::make_shared<CopiedIdentity>(*copied);
  another->target_id = "second";
  expect_refused("source", "closed for its copy first", now(another, Opening::close));
  expect_refused("source", "closed for the copy first", now(another, Opening::reopen));
  another->lost_copy = "first";
  opened("source", now(another, Opening::close)).reset();
  expect_refused("source", "closed for another copy meanwhile", now(copied, Opening::move));
  expect_refused("source", "closed for the copy second", now(copied, Opening::reopen));
  opened("source", now(another, Opening::reopen)).reset();
  running.reset();
  running = opened("source");
  ASSERT_TRUE(running);
  EXPECT_EQ(running->identity().generation, changed + 2);
  outcome = test::try_ask(*running, a_reserve(3, 3));
  EXPECT_TRUE(outcome && is<Execute>(*outcome));
  // DynamoDB's clock has whole seconds: to another process the request may be due a moment later.
  bool is_claimed = false;
  for (int turn = 0; turn < 500 && !is_claimed; ++turn) {
    const auto claimed = ask_and_wait(*running, Claim{token(51), "dispatcher", lease, true});
    ASSERT_TRUE(claimed) << claimed.error().detail;
    is_claimed = claimed->has_value();
    if (!is_claimed) ::poll(nullptr, 0, 10);
  }
  EXPECT_TRUE(is_claimed);
}

TEST_P(CopiedIdentityConformance, a_moved_source_is_closed_for_good) {
  opened("source").reset();
  const auto copied = std::make_shared<CopiedIdentity>();
  opened("source", now(copied, Opening::read)).reset();
  copied->target_id = "first";
  opened("source", now(copied, Opening::close)).reset();
  const auto early = std::make_shared<CopiedIdentity>(*copied);
  opened("source", now(copied, Opening::reopen)).reset();
  opened("source", now(copied, Opening::close)).reset();
  expect_refused("source", "opened again", now(early, Opening::move));
  const auto another = std::make_shared<CopiedIdentity>(*copied);
  another->target_id = "second";
  expect_refused("source", "closed for another copy", now(another, Opening::move));
  opened("source", now(copied, Opening::move)).reset();
  opened("source", now(copied, Opening::close)).reset();
  opened("source", now(copied, Opening::move)).reset();
  EXPECT_TRUE(copied->is_moved);
  expect_refused("source", "has taken its place", now(copied, Opening::reopen));
  another->lost_copy = "first";
  expect_refused("source", "closed for its copy first", now(another, Opening::close));
  expect_refused("source", "copied to the store first");
}

}  // namespace
}  // namespace idem::test
