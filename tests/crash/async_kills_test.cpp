#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "crash/async_judge.hpp"
#include "crash/clients.hpp"
#include "support/shared_store.hpp"

// Two gateways on one store, both of which accept and dispatch; they are killed in turn while
// clients of both go on. Each may run what the other accepted, and each request runs once.

namespace idem::test {
namespace {

void run_async_client(int client, unsigned seed, Whereabouts& whereabouts, Traffic& traffic) {
  std::mt19937 random(seed + static_cast<unsigned>(client) * 104729U);
  for (int next = 0;;) {
    const auto address = whereabouts.wait();
    if (address.empty()) return;
    const bool old = next > 0 && random() % 3 == 0;
    const int number = old ? static_cast<int>(random() % static_cast<unsigned>(next)) : next++;
    const auto key = number % 2 == 0 ? fmt::format("own-{}-{}", client, number)
                                     : fmt::format("shared-{}-{}", client / 2, number);
    const auto request = charge(key);
    traffic.sent(key, request);
    whereabouts.count_request();
    auto answer = send_once(address, request);
    const bool gone = answer.status == 0;
    traffic.answered(key, std::move(answer));
    if (gone) std::this_thread::yield();
    if (whereabouts.is_over()) return;
  }
}

class AsyncKills : public testing::TestWithParam<std::string> {};

TEST_P(AsyncKills, V09_V19_V28_gateways_that_are_killed_in_turn) {
  IDEM_NEED_PROGRAM("idem-crash");
  const SharedStoreUrl store(GetParam());
  const Provider provider;
  auto flags = short_lease();
  flags.insert(flags.end(), {"--mode", "async"});
  const GatewayOptions options{.upstream = provider.address(),
                               .store_url = store.url(),
                               .flags = flags,
                               .program = "idem-crash"};
  Gateway first(options);
  Gateway second(options);
  ASSERT_TRUE(first.running() && second.running()) << first.process().output();
  Gateway* const both[] = {&first, &second};
  const int kills = number_from("IDEM_CRASH_KILLS", 48) / 8;
  const unsigned seed = seed_of_this_run();
  std::mt19937 random(seed);
  Traffic traffic;
  Whereabouts whereabouts[2];
  std::vector<std::thread> clients;
  for (int at = 0; at < 2; ++at) {
    whereabouts[at].publish(both[at]->address());
    for (int i = 0; i < 2; ++i) {
      clients.emplace_back([&, at, i] { run_async_client(i, seed, whereabouts[at], traffic); });
    }
  }
  for (int kill = 0; kill < kills; ++kill) {
    const int at = kill % 2;
    whereabouts[at].wait_for_requests(5 + static_cast<int>(random() % 40));
    both[at]->kill();
    both[at]->process().wait();
    whereabouts[at].publish({});
    both[at]->restart();
    EXPECT_TRUE(both[at]->running()) << both[at]->process().output();
    whereabouts[at].publish(both[at]->address());
  }
  for (auto& one : whereabouts) one.end();
  for (auto& client : clients) client.join();
  AsyncOutcome outcome;
  judge(traffic, second.address(), provider, outcome);
  for (const auto& violation : outcome.violations) ADD_FAILURE() << violation;
  EXPECT_GT(outcome.completed, 0);
  fmt::print("async {} seed={} kills={}, accepted={}, completed={}, unknown={}\n", GetParam(), seed,
             kills, outcome.accepted, outcome.completed, outcome.unknown);
}

INSTANTIATE_TEST_SUITE_P(Stores, AsyncKills, testing::ValuesIn(shared_store_kinds()),
                         [](const auto& kind) { return kind.param; });

/// SIGSTOP beyond the lease, and on: by then the other gateway has had the request.
class AsyncStopped : public testing::TestWithParam<const char*> {};

TEST_P(AsyncStopped, T08_V19_the_other_gateway_has_it_and_it_runs_once) {
  IDEM_NEED_PROGRAM("idem-crash");
  const SharedStoreUrl store("postgres");
  const Provider provider;
  auto flags = short_lease();
  flags.insert(flags.end(), {"--mode", "async"});
  GatewayOptions options{.upstream = provider.address(),
                         .store_url = store.url(),
                         .flags = flags,
                         .environment = {fmt::format("IDEM_STOP_AT={}", GetParam())},
                         .program = "idem-crash"};
  Gateway sleeper(options);
  ASSERT_TRUE(sleeper.running()) << sleeper.process().output();
  Traffic traffic;
  traffic.sent("k", charge("k"));
  Connection client(sleeper.address());
  client.send(charge("k"));
  ASSERT_TRUE(sleeper.process().wait_stopped()) << "the point was not reached";
  options.environment.clear();
  Gateway other(options);
  ASSERT_TRUE(other.running()) << other.process().output();
  // Its lease runs out, and the other one runs the request or says that nobody knows.
  Response retried;
  do {
    retried = send_once(other.address(), with(charge("k"), "Prefer", "wait=5"));
  } while (retried.status == 202);
  const bool marked = std::string_view(GetParam()) != "claimed";
  EXPECT_EQ(retried.status, marked ? 409 : 201) << retried.raw;
  sleeper.carry_on();
  EXPECT_EQ(client.read_response().status, 202);
  EXPECT_EQ(sleeper.terminate(), 0) << "it has finished what it had";
  const auto after = send_once(other.address(), with(charge("k"), "Prefer", "wait=30"));
  EXPECT_EQ(after.status, 201) << "it provably sent nothing, and the next claim runs it";
  EXPECT_EQ(provider.of_key("k").arrivals, 1) << "after its lease the sleeper sent nothing";
}

INSTANTIATE_TEST_SUITE_P(Points, AsyncStopped,
                         testing::Values("claimed", "dispatch_before_first_byte"),
                         [](const auto& point) { return std::string(point.param); });

}  // namespace
}  // namespace idem::test
