#include "store_conformance/redis/asking.hpp"
#include "support/back_off.hpp"

#include <fmt/format.h>

/// The store in Redis at its start: what a server must be, and what is asked of it.
namespace idem::test {
namespace {

int calls_of(const RedisServer& server, const std::string& command) {
  const std::string stats = server.ask("info commandstats");
  const auto at = stats.find("cmdstat_" + command + ":calls=");
  if (at == stats.npos) return 0;
  return std::atoi(stats.c_str() + stats.find('=', at) + 1);
}

TEST(RedisOpen, T53_a_policy_that_evicts_is_refused_by_name) {
  for (const char* const policy : {"allkeys-lru", "volatile-ttl", "allkeys-random"}) {
    const RedisServer server(fmt::format("maxmemory-policy={}", policy));
    const Opened store = open_redis(server.url(), test_settings(), {});
    ASSERT_FALSE(store.has_value());
    EXPECT_NE(store.error().detail.find(fmt::format("maxmemory-policy is {}", policy)),
              std::string::npos)
        << store.error().detail;
    EXPECT_EQ(server.ask("dbsize"), "0") << "nothing was written";
  }
}

TEST(RedisOpen, T53_a_policy_that_is_changed_under_way_lets_nothing_new_begin) {
  const RedisServer server;
  const auto store = open_at(server.url());
  const Execute before = run(*store, 1);
  server.ask("config set maxmemory-policy allkeys-lru");
  // It is looked at every so often.
  bool is_refused = false;
  for (int number = 2; number < 200 && !is_refused; ++number) {
    const auto outcome = try_ask(*store, a_reserve(number));
    is_refused = !outcome;
    if (is_refused) {
      EXPECT_EQ(outcome.error().code, StoreError::Code::unavailable);
      EXPECT_NE(outcome.error().detail.find("allkeys-lru"), std::string::npos);
    } else {
      std::this_thread::sleep_for(100ms);
    }
  }
  EXPECT_TRUE(is_refused);
  const auto settled = try_ask(*store, a_complete(before));
  ASSERT_TRUE(settled.has_value());
  EXPECT_EQ(settled->verdict, Verdict::done) << "a running attempt is settled";
}

TEST(RedisOpen, S02_a_server_that_is_paused_is_not_called_unreachable) {
  const RedisServer server;
  server.ask("client pause 600000 ALL");
  const Opened store = open_redis(server.url(), test_settings(), {});
  ASSERT_FALSE(store.has_value());
  EXPECT_TRUE(store.error().detail.contains("may be paused (CLIENT PAUSE")) << store.error().detail;
}

TEST(RedisOpen, S02_a_user_without_rights_is_named_with_what_gives_them) {
  const RedisServer server;
  server.ask("acl setuser clerk on nopass ~* +ping +time +info +config");
  std::string url = server.url();
  url.insert(url.find("//") + 2, "clerk:any@");
  const Opened store = open_redis(url, test_settings(), {});
  ASSERT_FALSE(store.has_value());
  EXPECT_TRUE(store.error().detail.contains("ACL SETUSER gives it")) << store.error().detail;
}

// A start only warns of such a server, so that its operator knows. Here the operator does not.
TEST(RedisOpen, S22_a_server_that_becomes_less_durable_meanwhile_lets_nothing_new_begin) {
  for (const char* const setting : {"appendonly no", "appendfsync everysec"}) {
    const RedisServer server;
    const auto store = open_at(server.url());
    const Execute before = run(*store, 1);
    server.ask(fmt::format("config set {}", setting));
    int number = 2;
    auto outcome = try_ask(*store, a_reserve(number));
    while (outcome) {
      back_off();
      outcome = try_ask(*store, a_reserve(++number));
    }
    EXPECT_EQ(outcome.error().code, StoreError::Code::unavailable);
    EXPECT_NE(outcome.error().detail.find("the server has become less durable: append"),
              std::string::npos)
        << outcome.error().detail;
    const auto settled = try_ask(*store, a_complete(before));
    ASSERT_TRUE(settled.has_value());
    EXPECT_EQ(settled->verdict, Verdict::done) << "a running attempt is settled";
    server.ask("config set appendonly yes appendfsync always");
    do {
      back_off();
      outcome = try_ask(*store, a_reserve(++number));
    } while (!outcome);
  }
}

TEST(RedisOpen, S02_settings_that_would_lose_records_are_warned_of) {
  const RedisServer server("appendonly=no");
  const RedisServer lax("appendfsync=everysec");
  const RedisServer strict;
  const auto warnings_of = [](const RedisServer& one) {
    std::vector<std::string> warnings;
    const auto store =
        open_redis(one.url(), test_settings(),
                   {.warn = [&](const std::string& warning) { warnings.push_back(warning); }});
    EXPECT_TRUE(store.has_value());
    return warnings;
  };
  ASSERT_EQ(warnings_of(server).size(), 1U);
  EXPECT_NE(warnings_of(server).front().find("appendonly is off"), std::string::npos);
  ASSERT_EQ(warnings_of(lax).size(), 1U);
  EXPECT_NE(warnings_of(lax).front().find("appendfsync is everysec"), std::string::npos);
  EXPECT_TRUE(warnings_of(strict).empty());
}

TEST(RedisOpen, S02_a_replica_and_a_wrong_layout_are_refused) {
  RedisServer master;
  const RedisServer replica = RedisServer::replica_of(master);
  const Opened on_replica = open_redis(replica.url(), test_settings(), {});
  ASSERT_FALSE(on_replica.has_value());
  EXPECT_NE(on_replica.error().detail.find("replica"), std::string::npos);
  const Opened as_cluster =
      open_redis("redis+cluster://" + master.address() + "/", test_settings(), {});
  ASSERT_FALSE(as_cluster.has_value());
  const std::string one_of_three =
      shared_redis_cluster_addresses().substr(0, shared_redis_cluster_addresses().find(','));
  const Opened as_one = open_redis("redis://" + one_of_three, test_settings(), {});
  ASSERT_FALSE(as_one.has_value());
  EXPECT_NE(as_one.error().detail.find("redis+cluster://"), std::string::npos);
}

TEST(RedisOpen, S02_nodes_that_start_at_one_time_agree) {
  const RedisServer server;
  constexpr int nodes = 6;
  std::vector<std::unique_ptr<Store>> stores(nodes);
  std::vector<std::thread> starts;
  for (int i = 0; i < nodes; ++i) {
    starts.emplace_back([&, i] { stores[static_cast<std::size_t>(i)] = open_at(server.url()); });
  }
  for (auto& start : starts) start.join();
  for (const auto& store : stores) {
    EXPECT_EQ(store->identity().secret, stores.front()->identity().secret);
    EXPECT_EQ(store->identity().generation, stores.front()->identity().generation);
  }
  run(*stores.front(), 1);
  EXPECT_TRUE(is<InProgress>(*try_ask(*stores.back(), a_reserve(1, 2))));
}

TEST(RedisOpen, S15_moments_are_the_servers_own) {
  const RedisServer server;
  const auto store = open_at(server.url());
  const auto seconds = [&] { return std::atoll(server.ask("time").c_str()); };
  const auto before = seconds();
  run(*store, 1);
  const auto after = seconds();
  const auto record = try_ask(*store, Find{key(1)});
  ASSERT_TRUE(record && *record);
  const auto created = (*record)->created_at.time_since_epoch().count();
  EXPECT_GE(created, before * 1000 - 50);
  EXPECT_LE(created, (after + 1) * 1000);
  EXPECT_EQ((*record)->locked_until - (*record)->created_at, lease);
}

TEST(RedisOpen, S03_round_trips_are_one_for_each_step) {
  const RedisServer server;
  const auto store = open_at(server.url());
  run(*store, 100);  // A first call brings the scripts.
  const auto count = [&](auto step) {
    const int before = calls_of(server, "evalsha");
    step();
    return calls_of(server, "evalsha") - before;
  };
  Execute first;
  EXPECT_EQ(count([&] { first = run(*store, 1); }), 1);
  EXPECT_EQ(count([&] { try_ask(*store, Dispatched{first.id, first.attempt}); }), 1);
  EXPECT_EQ(count([&] { try_ask(*store, a_complete(first)); }), 1);
  EXPECT_EQ(count([&] { EXPECT_TRUE(is<Replay>(*try_ask(*store, a_reserve(1, 2)))); }), 1);
}

TEST(RedisOpen, S02_a_database_that_is_not_there_is_refused) {
  const RedisServer server;
  const Opened store = open_redis(server.url() + "/99", test_settings(), {});
  ASSERT_FALSE(store.has_value());
  EXPECT_NE(store.error().detail.find("DB index"), std::string::npos) << store.error().detail;
}

}  // namespace
}  // namespace idem::test
