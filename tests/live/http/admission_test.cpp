#include <gtest/gtest.h>
#include <poll.h>

#include <functional>

#include "support/live.hpp"

/// How many connections a client, and all clients together, may have.
namespace idem::test {
namespace {

constexpr int per_address = 8;
const Request page{.method = "GET", .target = "/.idem/problems/key_reused"};

/// Connections that were admitted: each has been answered once and is kept open.
class Held {
 public:
  Held(std::string address, std::string from)
      : address_(std::move(address)), from_(std::move(from)) {}

  /// One more; false when it was closed instead of being answered.
  bool take() {
    auto connection = std::make_unique<Connection>(address_, from_);
    if (connection->exchange(page).status != 200) return false;
    open_.push_back(std::move(connection));
    return true;
  }
  /// As many as asked for, as soon as there are places: an ending is seen a moment later there.
  bool take_all(int count) {
    const auto give_up = std::chrono::steady_clock::now() + patience;
    while (static_cast<int>(open_.size()) < count) {
      if (take()) continue;
      if (std::chrono::steady_clock::now() > give_up) return false;
      ::poll(nullptr, 0, 5);
    }
    return true;
  }
  std::vector<std::unique_ptr<Connection>>& open() { return open_; }

 private:
  std::string address_;
  std::string from_;
  std::vector<std::unique_ptr<Connection>> open_;
};

class PerAddress : public Live {
 protected:
  std::vector<std::string> flags() const override {
    return {"--connections-per-address", std::to_string(per_address), "--head-timeout", "200ms"};
  }
};

TEST_F(PerAddress, one_client_cannot_occupy_the_places_of_others) {
  Held greedy(gateway_->address(), "127.0.0.2");
  for (int i = 0; i < per_address; ++i) EXPECT_TRUE(greedy.take());
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(greedy.take());
  Held other(gateway_->address(), "127.0.0.3");
  EXPECT_TRUE(other.take());
  EXPECT_EQ(ask(charge("k")).status, 201);
  for (auto& connection : greedy.open()) EXPECT_EQ(connection->exchange(page).status, 200);
}

// A place that is not given back on one of the endings would soon lock everybody out.
TEST_F(PerAddress, every_ending_gives_the_place_back) {
  const std::function<void(Connection&)> endings[] = {
      [](Connection& c) { c.socket().close(); },
      [](Connection& c) { c.socket().reset(); },
      [](Connection& c) { c.socket().half_close(), c.read_until_close(); },
      [](Connection& c) { c.exchange(with(page, "Connection", "close")), c.read_until_close(); },
      [](Connection& c) { c.send_raw("no HTTP\r\n\r\n"), c.read_until_close(); },
      [](Connection& c) { c.send_raw("GET / HT"), c.read_until_close(); },  // 408.
      [](Connection& c) { c.send_raw("GET / HT"), c.socket().reset(); },
      [](Connection& c) {
        c.send_raw("POST /charges HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
        c.socket().reset();
      },
      [](Connection& c) { c.send(charge("k")), c.socket().reset(); }};
  int number = 0;
  for (const auto& ending : endings) {
    SCOPED_TRACE(number++);
    Held held(gateway_->address(), "127.0.0.2");
    ASSERT_TRUE(held.take_all(per_address));
    for (auto& connection : held.open()) ending(*connection);
    held.open().clear();
    Held next(gateway_->address(), "127.0.0.2");
    ASSERT_TRUE(next.take_all(per_address));
  }
}

class AllConnections : public Live {
 protected:
  std::vector<std::string> flags() const override { return {"--connections", "12"}; }
};

TEST_F(AllConnections, above_the_limit_connections_are_closed_and_logged) {
  std::vector<std::unique_ptr<Held>> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(
        std::make_unique<Held>(gateway_->address(), "127.0.1." + std::to_string(i + 1)));
    ASSERT_TRUE(clients.back()->take());
  }
  Held late(gateway_->address(), "127.0.2.1");
  for (int i = 0; i < 300; ++i) EXPECT_FALSE(late.take());
  const auto line = gateway_->process().wait_for_line("connections_refused");
  ASSERT_TRUE(line);
  EXPECT_NE(line->find("limit=connections"), std::string::npos) << *line;
  const auto output = gateway_->process().output();
  int lines = 0;
  for (auto at = output.find("connections_refused"); at != output.npos;
       at = output.find("connections_refused", at + 1)) {
    ++lines;
  }
  EXPECT_LT(lines, 100) << "a flood of connections became a flood of lines";
  clients.pop_back();
  EXPECT_TRUE(late.take_all(1));
}

// Without a descriptor for its next file the embedded store would end the process, and what runs
// would be unknown.
TEST(ClientLimits, clients_leave_the_embedded_store_its_descriptors) {
  IDEM_NEED_PROGRAM("idem");
  const TempDir dir;
  Provider provider;
  ProcessOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c",
                       "ulimit -n 1000 && exec \"$0\" \"$@\"",
                       built_program("idem").string(),
                       "gateway",
                       "--listen",
                       "127.0.0.1:0",
                       "--upstream",
                       "http://" + provider.address(),
                       "--scope",
                       "static:api",
                       "--store",
                       "embedded:" + (dir.path() / "idem.store").string()};
  Process gateway(options);
  const std::string address = gateway.wait_for_address("gateway");
  ASSERT_FALSE(address.empty()) << gateway.output();
  Held clients(address, "127.0.2.1");
  int taken = 0;
  while (taken < 500 && clients.take()) ++taken;
  EXPECT_EQ(taken, (1'000 - 728) / 3);
  clients.open().pop_back();
  Held other(address, "127.0.2.2");
  ASSERT_TRUE(other.take_all(1));
  EXPECT_EQ(other.open().front()->exchange(charge("k")).status, 201);
  gateway.signal(SIGTERM);
  EXPECT_EQ(gateway.exit_code(), 0) << gateway.output();
}

TEST(ClientLimits, a_value_beyond_the_caps_is_a_usage_error) {
  IDEM_NEED_PROGRAM("idem");
  const TempDir dir;
  const std::vector<std::string> mistakes[] = {
      {"--head-timeout", "0s"},  {"--head-timeout", "2m"},     {"--idle-timeout", "2h"},
      {"--idle-timeout", "0ms"}, {"--body-grace", "5m"},       {"--write-timeout", "1d"},
      {"--connections", "0"},    {"--connections", "9999999"}, {"--connections-per-address", "0"}};
  for (const auto& flags : mistakes) {
    Gateway gateway({.upstream = "127.0.0.1:1", .store = dir.path() / "idem.db", .flags = flags});
    EXPECT_EQ(gateway.process().exit_code(), 2) << flags.front() << gateway.process().output();
    EXPECT_NE(gateway.process().output().find(flags.front()), std::string::npos);
  }
}

}  // namespace
}  // namespace idem::test
