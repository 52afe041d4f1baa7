#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include "support/black_hole.hpp"
#include "support/certificates.hpp"
#include "support/cutting_proxy.hpp"
#include "support/dynamodb.hpp"
#include "support/live.hpp"
#include "support/mysql.hpp"
#include "support/postgres.hpp"
#include "support/redis.hpp"
#include "support/scripted_upstream.hpp"

/// A name with several addresses, of which the first swallows packets (RFC 8305): the way to the
/// API, and to each store.
namespace idem::test {
namespace {

class HappyEyeballs : public testing::Test {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    if (!can_have_own_hosts()) GTEST_SKIP() << "no mount of one's own is possible here";
  }

  /// `payments.test` has these addresses.
  std::filesystem::path hosts(const std::vector<std::string>& addresses = {"127.0.0.2",
                                                                           "127.0.0.3"}) {
    const auto file = dir_.path() / "hosts";
    std::ofstream lines(file);
    for (const std::string& address : addresses) lines << address << " payments.test\n";
    return file;
  }

  /// A gateway whose store is reached at `payments.test`, whose first address is silent, executes
  /// and replays. `target`: where the store's server really is. `url`: of the store at a HOST:PORT.
  void expect_store_works(const std::string& target,
                          const std::function<std::string(const std::string&)>& url) {
    const CuttingProxy server(target, "127.0.0.3");
    const BlackHole hole("127.0.0.2", server.port());
    ASSERT_TRUE(hole.is_black());
    const Provider provider;
    Gateway gateway({.upstream = provider.address(),
                     .store_url = url("payments.test:" + std::to_string(server.port())),
                     .hosts = hosts()});
    ASSERT_TRUE(gateway.running()) << gateway.process().output();
    EXPECT_EQ(send_once(gateway.address(), charge("key")).status, 201);
    const Response again = send_once(gateway.address(), charge("key"));
    EXPECT_EQ(again.status, 201) << again.body;
    EXPECT_EQ(again.get("Idempotent-Replayed"), "true");
    EXPECT_EQ(provider.effects("key"), 1);
  }

  TempDir dir_;
};

TEST_F(HappyEyeballs, S11_a_request_runs_at_the_address_that_accepts_and_once) {
  const BlackHole hole("127.0.0.2");
  ASSERT_TRUE(hole.is_black());
  const std::string port = ":" + std::to_string(hole.port());
  const Provider provider("127.0.0.3" + port);
  ASSERT_TRUE(provider.running());
  Gateway gateway({.upstream = "http://payments.test" + port,
                   .store = dir_.path() / "idem.db",
                   .hosts = hosts({"127.0.0.2", "127.0.0.3"})});
  ASSERT_TRUE(gateway.running());
  for (const std::string key : {"first", "second", "third"}) {
    const Response answer = send_once(gateway.address(), charge(key));
    EXPECT_EQ(answer.status, 201) << answer.body;
    EXPECT_EQ(provider.effects(key), 1);
    EXPECT_EQ(provider.of_key(key).arrivals, 1) << "the bytes went to one connection";
  }
}

TEST_F(HappyEyeballs, S11_what_accepted_is_first_for_the_next_connections) {
  auto hole = std::make_optional<BlackHole>("127.0.0.2");
  ASSERT_TRUE(hole->is_black());
  const std::string port = ":" + std::to_string(hole->port());
  const Provider second("127.0.0.3" + port);
  ASSERT_TRUE(second.running());
  Gateway gateway({.upstream = "http://payments.test" + port,
                   .store = dir_.path() / "idem.db",
                   .flags = {"--threads", "1", "--keepalive-idle", "0s"},
                   .hosts = hosts()});
  ASSERT_TRUE(gateway.running());
  EXPECT_EQ(send_once(gateway.address(), charge("first")).status, 201);
  hole.reset();
  {
    // It accepts again, and is not asked while the answer is kept.
    const Provider first("127.0.0.2" + port);
    ASSERT_TRUE(first.running());
    EXPECT_EQ(send_once(gateway.address(), charge("second")).status, 201);
    EXPECT_EQ(second.effects("second"), 1);
    EXPECT_EQ(first.ledger().arrivals, 0);
  }
}

TEST_F(HappyEyeballs, S11_all_addresses_silent_is_a_release_at_the_connect_timeout) {
  const BlackHole hole("127.0.0.2");
  const BlackHole another("127.0.0.3", hole.port());
  ASSERT_TRUE(hole.is_black() && another.is_black());
  Gateway gateway({.upstream = "http://payments.test:" + std::to_string(hole.port()),
                   .store = dir_.path() / "idem.db",
                   .flags = {"--connect-timeout", "400ms"},
                   .hosts = hosts()});
  ASSERT_TRUE(gateway.running());
  for (int i = 0; i < 2; ++i) {
    const Response answer = send_once(gateway.address(), charge("key"));
    EXPECT_EQ(answer.status, 503) << answer.body;
    EXPECT_NE(answer.body.find("connecting to the upstream timed out"), answer.body.npos)
        << answer.body;
  }
}

TEST_F(HappyEyeballs, S11_the_address_that_accepts_has_to_prove_the_name) {
  Authority authority(dir_.path() / "pki", "upstream-ca");
  for (const bool is_named : {true, false}) {
    const auto files = authority.issue(
        {.common_name = "api", .other_names = {is_named ? "DNS:payments.test" : "DNS:other.test"}});
    ScriptedUpstream upstream(
        ScriptedUpstream::answer_all,
        {.tls = TlsSide{.certificate = files.certificate, .key = files.key, .alpn = "http/1.1"}});
    const CuttingProxy server(upstream.address(), "127.0.0.3");
    const BlackHole hole("127.0.0.2", server.port());
    ASSERT_TRUE(hole.is_black());
    Gateway gateway({.upstream = "https://payments.test:" + std::to_string(server.port()),
                     .store = dir_.path() / (is_named ? "named.db" : "other.db"),
                     .flags = {"--upstream-ca", authority.file()},
                     .hosts = hosts()});
    ASSERT_TRUE(gateway.running());
    const Response answer = send_once(gateway.address(), charge("key"));
    EXPECT_EQ(answer.status, is_named ? 200 : 503) << answer.body;
    const auto received = upstream.received();
    EXPECT_EQ(std::ranges::count_if(
                  received, [](const std::string& bytes) { return bytes.contains("POST"); }),
              is_named ? 1 : 0);
  }
}

TEST_F(HappyEyeballs, S11_of_postgres) {
  const TestDatabase database;
  const std::string uri = database.uri();
  const std::string folder = uri.substr(uri.find("host=") + 5);
  const std::string name = uri.substr(uri.rfind('/', uri.find('?')) + 1);
  expect_store_works(folder.substr(0, folder.find('&')) + "/.s.PGSQL.5432",
                     [&](const std::string& at) {
                       return "postgres://postgres@" + at + "/" + name.substr(0, name.find('?'));
                     });
}

TEST_F(HappyEyeballs, S11_of_mariadb) {
  const TestMysqlDatabase database;
  const std::string url = database.url();
  expect_store_works(shared_mysql_address(), [&](const std::string& at) {
    return "mysql://root@" + at + url.substr(url.rfind('/'));
  });
}

TEST_F(HappyEyeballs, S11_of_redis) {
  expect_store_works(shared_redis_address(), [&](const std::string& at) {
    return "redis://" + at + "/?prefix=" + new_redis_prefix();
  });
}

TEST_F(HappyEyeballs, S11_of_dynamodb) {
  const std::string endpoint = shared_dynamodb_endpoint();
  expect_store_works(endpoint.substr(endpoint.find("://") + 3), [&](const std::string& at) {
    return dynamodb_url("http://" + at, new_dynamodb_table());
  });
}

}  // namespace
}  // namespace idem::test
