#include <mysql.h>

#include "store_conformance/mysql/asking.hpp"
#include "store_conformance/transacting.hpp"
#include "support/certificates.hpp"
#include "support/temp_dir.hpp"

/// mysql://...?ca_file=: the store says nothing to a server that did not prove who it is.
namespace idem::test {
namespace {

class MysqlTls : public testing::Test {
 protected:
  /// Its certificate is for `name`. The users `encrypted` and `known` have the password
  /// "topsecret"; `known` also needs a certificate of its own.
  std::unique_ptr<MysqlServer> server_for(const std::string& name) {
    const auto files = authority_.issue({.common_name = "mysql", .other_names = {name}});
    auto server = std::make_unique<MysqlServer>(fmt::format(
        "ssl_cert={} ssl_key={} ssl_ca={}", files.certificate, files.key, authority_.file()));
    make_users(*server);
    return server;
  }
  static void make_users(const MysqlServer& server) {
    MysqlSession(server.url())
        .run(
            "CREATE USER encrypted IDENTIFIED BY 'topsecret' REQUIRE SSL;"
            "CREATE USER known IDENTIFIED BY 'topsecret' REQUIRE X509;"
            "GRANT ALL ON *.* TO encrypted, known");
  }
  static std::string url(const MysqlServer& server, const std::string& user,
                         const std::string& options) {
    return fmt::format("mysql://{}:topsecret@{}/idem?{}", user, server.address(), options);
  }
  static std::string logins(const MysqlServer& server) {
    return MysqlSession(server.url())
        .run(
            "SELECT SUM(total_connections) FROM information_schema.user_statistics"
            " WHERE user IN ('encrypted', 'known')");
  }

  TempDir dir_;
  Authority authority_{dir_.path(), "authority"};
};

TEST_F(MysqlTls, S02_a_server_that_is_believed_is_used) {
  const auto server = server_for("IP:127.0.0.1");
  const auto own = authority_.issue({.common_name = "idem"});
  const std::string ca = "ca_file=" + authority_.file();
  const std::string with_own = ca + "&cert_file=" + own.certificate + "&key_file=" + own.key;
  int number = 0;
  for (const std::string& place :
       {url(*server, "encrypted", ca), url(*server, "known", with_own)}) {
    const auto store = open_by_url(place);
    const Execute attempt = run(*store, ++number);
    EXPECT_EQ(try_ask(*store, a_complete(attempt))->verdict, Verdict::done);
    // Services' transactions have connections of their own.
    EXPECT_TRUE(store->transactions()->run("SELECT 1").has_value());
  }
  const std::string refused = refusal(url(*server, "known", ca));
  EXPECT_NE(refused.find("denied"), std::string::npos) << refused;
}

TEST_F(MysqlTls, S02_a_server_that_is_not_trusted_receives_no_password) {
  const auto server = server_for("IP:127.0.0.1");
  const auto misnamed = server_for("DNS:elsewhere.example");
  const MysqlServer plain;
  make_users(plain);
  const MysqlServer* const servers[] = {server.get(), misnamed.get(), &plain};
  const Authority stranger(dir_.path(), "stranger");
  const std::string ca = "ca_file=" + authority_.file();
  for (const MysqlServer* const one : servers) {
    MysqlSession(one->url()).run("SET GLOBAL userstat = 1");
  }
  std::vector<std::string> places{url(*server, "encrypted", "ca_file=" + stranger.file()),
                                  url(*server, "encrypted", "ca_file=/nowhere/ca.pem"),
                                  url(plain, "encrypted", ca)};
  // From 3.4.2 on the client compares no name where the server is on this machine, as it is here.
  if (mysql_get_client_version() < 30402) places.push_back(url(*misnamed, "encrypted", ca));
  for (const std::string& place : places) {
    const std::string refused = refusal(place);
    EXPECT_NE(refused, "") << place;
    EXPECT_EQ(refused.find("topsecret"), std::string::npos) << refused;
  }
  for (const MysqlServer* const one : servers) {
    EXPECT_EQ(logins(*one), "");
  }
}

}  // namespace
}  // namespace idem::test
