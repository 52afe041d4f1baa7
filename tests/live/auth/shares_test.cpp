#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "support/bulk.hpp"
#include "support/live.hpp"

/// One tenant, behind a proxy that all share, takes whatever it can get (protocol.md §22). One
/// loop, so that a request that was sent before another is also met before it.
namespace idem::test {
namespace {

class Shares : public Live {
 protected:
  std::vector<std::string> flags() const override {
    return {"--mode", "wait", "--wait-max", "5m", "--threads", "1", "--connections", "64"};
  }
  static Request of(const std::string& tenant, Request request) {
    return with(without(std::move(request), "X-Tenant-Id"), "X-Tenant-Id", tenant);
  }
};

TEST_F(Shares, S22_T39_waiters_of_one_tenant_lock_nobody_out) {
  Connection first(gateway_->address());
  first.send(charge("k", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  std::deque<Connection> waiters;
  for (int i = 0; i < 25; ++i) {
    waiters.emplace_back(gateway_->address());
    waiters.back().send(charge("k"));
  }
  EXPECT_TRUE(is_problem(ask(with(charge("k"), "Prefer", "wait=0")), 409, "in_progress"));
  std::size_t refused = 0;
  for (auto& one : waiters) refused += one.socket().readable_within(0) ? 1 : 0;
  EXPECT_EQ(refused, 9U) << "of 32 places one alone has half";

  Connection theirs(gateway_->address());
  theirs.send(of("globex", charge("k", "hold=g")));
  ASSERT_TRUE(provider_->wait_held("g", 1));
  Connection waiter(gateway_->address());
  waiter.send(of("globex", charge("k")));
  const auto another = of("globex", with(charge("k"), "Prefer", "wait=0"));
  EXPECT_TRUE(is_problem(ask(another), 409, "in_progress"));
  EXPECT_FALSE(waiter.socket().readable_within(0)) << "it waits";
  provider_->release("g");
  EXPECT_TRUE(replays(theirs.read_response(), waiter.read_response()));
  provider_->release("h");
  const auto answer = first.read_response();
  for (auto& one : waiters) {
    const auto response = one.read_response();
    EXPECT_TRUE(response.status == 409 || replays(answer, response)) << response.raw;
  }
}

TEST_F(Shares, S22_T39_requests_of_one_tenant_lock_nobody_out) {
  std::deque<Connection> clients;
  for (int i = 0; i < 32; ++i) {
    clients.emplace_back(gateway_->address());
    clients.back().send(charge(fmt::format("k{}", i), "hold=h"));
  }
  ASSERT_TRUE(provider_->wait_held("h", 32));
  const auto refused = ask(charge("one-more"));
  EXPECT_TRUE(is_problem(refused, 503, "overloaded")) << refused.raw;
  EXPECT_TRUE(refused.get("Retry-After"));
  EXPECT_EQ(refused.get("Connection"), "close") << "kept open it would lock others out";
  EXPECT_NE(refused.body.find("\"retry\":\"same_key\""), std::string::npos) << refused.body;
  EXPECT_EQ(ask(of("globex", charge("k0"))).status, 201);
  provider_->release("h");
  for (auto& client : clients) EXPECT_EQ(client.read_response().status, 201);
  EXPECT_EQ(ask(charge("one-more")).status, 201);
  EXPECT_EQ(provider_->ledger().effects, 34);
}

/// Slow requests without a key: what the upstream does with them is not known here.
class UnkeyedShares : public Shares {
 protected:
  /// Of 64: the first eighth without a look at the caller, and half of the others.
  static constexpr int most = 8 + 28;
  static Request slow() {
    return {.method = "PUT", .target = "/charges?fault=hold=h", .fields = {}, .body = "{}"};
  }
  static Request quick() { return {.method = "GET", .target = "/echo", .fields = {}}; }
  /// So many requests of one caller that it may have no more.
  void occupy(const Request& request, std::string_view from = {}) {
    for (int i = 0; i < most; ++i) {
      held_.emplace_back(gateway_->address(), from);
      held_.back().send(request);
    }
    ASSERT_TRUE(provider_->wait_held("h", most));
  }
  void expect_busy(const Request& request) {
    for (int i = 0; i < 40; ++i) {
      const auto refused = ask(request);
      ASSERT_TRUE(is_problem(refused, 503, "overloaded")) << refused.raw;
      ASSERT_EQ(refused.get("Connection"), "close");
    }
  }
  void let_go() {
    provider_->release("h");
    for (auto& client : held_) EXPECT_EQ(client.read_response().status, 201);
  }
  std::deque<Connection> held_;
};

TEST_F(UnkeyedShares, S22_T39_slow_requests_of_one_tenant_lock_nobody_out) {
  ASSERT_NO_FATAL_FAILURE(occupy(of("acme", slow())));
  expect_busy(of("acme", quick()));
  EXPECT_TRUE(is_problem(ask(charge("k")), 503, "overloaded")) << "with a key or without";
  EXPECT_EQ(ask(of("globex", quick())).status, 200);
  EXPECT_EQ(ask(of("globex", charge("k"))).status, 201);
  let_go();
  EXPECT_EQ(ask(of("acme", quick())).status, 200);
}

TEST_F(UnkeyedShares, S22_T39_where_no_scope_is_known_the_address_has_a_share) {
  ASSERT_NO_FATAL_FAILURE(occupy(slow(), "127.0.0.2"));
  Connection same(gateway_->address(), "127.0.0.2");
  EXPECT_TRUE(is_problem(same.exchange(quick()), 503, "overloaded"));
  EXPECT_EQ(ask(quick()).status, 200);
  EXPECT_EQ(ask(charge("k")).status, 201);
  let_go();
}

class UnkeyedByProxy : public UnkeyedShares {
 protected:
  void SetUp() override {
    UnkeyedShares::SetUp();
    auto options = this->options(provider_->address());
    options.scope = {"--scope", "header:X-Tenant-Id", "--trusted-proxy", "127.0.0.1/32"};
    options.store = dir_.path() / "by_proxy.db";
    gateway_ = std::make_unique<Gateway>(std::move(options));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
};

TEST_F(UnkeyedByProxy, S22_T39_a_trusted_proxys_address_is_not_one_client) {
  ASSERT_NO_FATAL_FAILURE(occupy(slow()));
  EXPECT_EQ(ask(quick()).status, 200);
  let_go();
}

class UnkeyedCredentials : public UnkeyedShares {
 protected:
  void SetUp() override {
    UnkeyedShares::SetUp();
    auto options = this->options(provider_->address());
    options.scope = {"--scope", "authorization"};
    options.store = dir_.path() / "by_credential.db";
    gateway_ = std::make_unique<Gateway>(std::move(options));
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
};

TEST_F(UnkeyedCredentials, S22_T39_a_credential_has_a_share_before_anyone_has_checked_it) {
  ASSERT_NO_FATAL_FAILURE(occupy(with(slow(), "Authorization", "Bearer one")));
  expect_busy(with(quick(), "Authorization", "Bearer one"));
  EXPECT_EQ(ask(with(quick(), "Authorization", "Bearer two")).status, 200);
  let_go();
}

class SlowReaders : public Live {
 protected:
  static constexpr std::size_t size = 1'000'000;
  std::vector<std::string> flags() const override { return {"--threads", "1"}; }
};

// Each of them asks for the answer, takes a little of it, and then nothing. What it asked with is
// not kept either.
TEST_F(SlowReaders, S22_hold_one_copy_of_an_answer) {
  const auto request = charge("k", fmt::format("size={}", size), std::string(60'000, 'x'));
  const auto first = ask(request);
  ASSERT_EQ(first.status, 201) << first.raw;
  ASSERT_EQ(ask(request).body, first.body);
  const auto pid = gateway_->process().pid();
  const auto before = anonymous_bytes(pid);
  constexpr std::size_t readers = 100;
  std::vector<Socket> sockets;
  for (std::size_t i = 0; i < readers; ++i) {
    sockets.push_back(Socket::connect_with_small_window(gateway_->address(), "127.0.0.1"));
    ASSERT_TRUE(sockets.back().send_all(to_wire(request)));
    std::string seen;
    ASSERT_TRUE(read_until(sockets.back(), seen, "Idempotent-Replayed"));
  }
  const auto grown = anonymous_bytes(pid) - std::min(before, anonymous_bytes(pid));
  RecordProperty("growth_kib", static_cast<int>(grown / 1024));
  if (!sanitized) {
    EXPECT_LT(grown, size + readers * 80 * 1024) << "each had a copy of its own";
  }
  EXPECT_EQ(ask(request).body, first.body);
  EXPECT_EQ(effects("k"), 1);
}

// Work that would need a second of a loop is done beside it, by a thread that is known by its name.
class LargeBody : public Live {};

TEST_F(LargeBody, T41_is_digested_beside_the_loop) {
  std::string body = "[0";
  while (body.size() < 900'000) body += R"(,{"amount":1250.5,"name":"abcdefgh"})";
  body += ']';
  const auto before = waits_of(gateway_->process().pid(), "idem-digest");
  const auto first = ask(charge("k", "", body));
  EXPECT_EQ(first.status, 201) << first.raw;
  EXPECT_TRUE(replays(first, ask(charge("k", "", body))));
  body.insert(1, "1,");
  EXPECT_TRUE(is_problem(ask(charge("k", "", body)), 422, "key_reused"));
  // A thread that has answered the last of the three may not be waiting again yet.
  EXPECT_GE(waits_of(gateway_->process().pid(), "idem-digest"), before + 2);
}

}  // namespace
}  // namespace idem::test
