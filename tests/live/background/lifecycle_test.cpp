#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "support/live.hpp"

namespace idem::test {
namespace {

using Lifecycle = Live;

TEST_F(Lifecycle, sigterm_finishes_requests_in_flight) {
  Connection client(gateway_->address());
  client.send(charge("k", "hold=h"));
  ASSERT_TRUE(provider_->wait_held("h", 1));
  gateway_->process().signal(SIGTERM);
  provider_->release("h");
  const auto answer = client.read_response();
  EXPECT_EQ(answer.status, 201) << answer.trouble;
  EXPECT_EQ(gateway_->process().exit_code(), 0);
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  EXPECT_TRUE(replays(answer, ask(charge("k"))));
}

TEST_F(Lifecycle, sigterm_with_idle_connections_ends_at_once) {
  Connection idle(gateway_->address());
  EXPECT_EQ(idle.exchange(charge("k")).status, 201);
  EXPECT_EQ(gateway_->terminate(), 0);
}

TEST_F(Lifecycle, a_port_in_use_is_refused) {
  auto options = this->options(provider_->address());
  options.store = dir_.path() / "second.db";
  options.listen = gateway_->address();
  Gateway second(options);
  EXPECT_FALSE(second.running());
  EXPECT_EQ(second.process().exit_code(), 1);
  EXPECT_NE(second.process().output().find(gateway_->address()), std::string::npos)
      << second.process().output();
  EXPECT_EQ(ask(charge("k")).status, 201);
}

TEST_F(Lifecycle, a_store_in_use_is_refused) {
  if (live_store_kind() != "sqlite") GTEST_SKIP() << "a server is for several gateways";
  Gateway second(options(provider_->address()));
  EXPECT_FALSE(second.running());
  EXPECT_EQ(second.process().exit_code(), 1);
  EXPECT_NE(second.process().output().find("idem.db"), std::string::npos)
      << second.process().output();
  EXPECT_EQ(ask(charge("k")).status, 201);
}

TEST_F(Lifecycle, T33_without_a_scope_it_does_not_start) {
  auto options = this->options(provider_->address());
  options.store = dir_.path() / "second.db";
  options.scope.clear();
  Gateway second(options);
  EXPECT_FALSE(second.running());
  EXPECT_EQ(second.process().exit_code(), 2);
  EXPECT_NE(second.process().output().find("scope"), std::string::npos);
  options.scope = {"--scope", "header:X-Tenant-Id"};
  Gateway third(options);
  EXPECT_EQ(third.process().exit_code(), 2) << "a client's header is no scope unless it is trusted";
}

TEST_F(Lifecycle, T15_a_lease_that_does_not_outlast_the_timeout_is_refused) {
  auto options = this->options(provider_->address());
  options.store = dir_.path() / "second.db";
  options.flags = {"--lease", "30s", "--upstream-timeout", "30s"};
  Gateway second(options);
  EXPECT_EQ(second.process().exit_code(), 2);
  EXPECT_NE(second.process().output().find("lease"), std::string::npos);
}

TEST_F(Lifecycle, mistakes_on_the_command_line_are_usage_errors) {
  const std::vector<std::string> mistakes[] = {{"--no-such-flag"},
                                               {"--lease", "soon"},
                                               {"--lease", "60s", "--lease", "61s"},
                                               {"--upstream-timeout", "-1s"},
                                               {"--mode", "sometimes"}};
  for (const auto& flags : mistakes) {
    auto options = this->options(provider_->address());
    options.store = dir_.path() / "second.db";
    options.flags = flags;
    Gateway second(options);
    EXPECT_EQ(second.process().exit_code(), 2) << flags.front() << second.process().output();
  }
}

TEST_F(Lifecycle, a_store_that_cannot_be_opened_is_refused) {
  if (live_store_kind() != "sqlite") GTEST_SKIP() << "it is a file that cannot be opened";
  auto options = this->options(provider_->address());
  options.store = dir_.path() / "no" / "such" / "folder" / "idem.db";
  Gateway second(options);
  EXPECT_FALSE(second.running());
  EXPECT_NE(second.process().exit_code(), 0);
}

TEST_F(Lifecycle, a_store_of_another_scope_source_is_refused) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  EXPECT_EQ(gateway_->terminate(), 0);
  auto options = this->options(provider_->address());
  options.scope = {"--scope", "static:everyone"};
  Gateway other(options);
  EXPECT_FALSE(other.running()) << "every lookup would miss, and everything would run again";
  EXPECT_EQ(other.process().exit_code(), 2) << "a service manager does not try again";
  EXPECT_NE(other.process().output().find("scope.from is 'header:X-Tenant-Id'"), std::string::npos)
      << other.process().output();
}

TEST_F(Lifecycle, the_admin_listener_reports_liveness_and_readiness) {
  for (const auto* path : {"/livez", "/readyz"}) {
    const auto answer =
        send_once(gateway_->admin(),
                  {.method = "GET", .target = path, .fields = {{"Host", gateway_->admin()}}});
    EXPECT_EQ(answer.status, 200) << path;
  }
  const auto foreign =
      send_once(gateway_->admin(),
                {.method = "GET", .target = "/readyz", .fields = {{"Host", "evil.example"}}});
  EXPECT_GE(foreign.status, 400) << "a foreign Host is how a web page reaches a local port";
}

TEST_F(Lifecycle, our_own_paths_are_never_forwarded) {
  const auto page = ask({.method = "GET", .target = "/.idem/problems/key_reused"});
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.body.find("key_reused"), std::string::npos);
  EXPECT_EQ(ask({.method = "GET", .target = "/.idem/problems/no_such"}).status, 404);
  auto posted = charge("k");
  posted.target = "/.idem/anything";
  EXPECT_GE(ask(posted).status, 400);
  EXPECT_EQ(provider_->ledger().arrivals, 0);
}

}  // namespace
}  // namespace idem::test
