#include "store/redis/hybrid_store.hpp"
#include "store/redis/redis_store.hpp"
#include "store/stores.hpp"
#include "store_conformance/harness.hpp"
#include "support/certificates.hpp"
#include "support/redis.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>

#include <fstream>

/// rediss://: nothing is said to a server that did not prove who it is.
namespace idem::test {
namespace {

class RedisTls : public testing::Test {
 protected:
  /// Its certificate is for `name`.
  RedisServer server_for(const std::string& name) {
    const auto files = authority_.issue({.common_name = "redis", .other_names = {name}});
    return RedisServer(
        fmt::format("tls-cert-file={} tls-key-file={} tls-ca-cert-file={} requirepass=topsecret",
                    files.certificate, files.key, authority_.file()));
  }
  std::string url(const RedisServer& server, const std::string& ca_file) const {
    return fmt::format("rediss://:topsecret@{}/?ca_file={}", server.address(), ca_file);
  }
  static auto open(const std::string& url) { return open_redis(url, test_settings(), {}); }

  TempDir dir_;
  Authority authority_{dir_.path(), "authority"};
};

TEST_F(RedisTls, S02_a_server_that_is_believed_is_used) {
  const RedisServer server = server_for("IP:127.0.0.1");
  auto store = open(url(server, authority_.file()));
  ASSERT_TRUE(store.has_value()) << store.error().detail;
  Reserve verb = a_reserve(1);
  verb.generation = (*store)->identity().generation;
  const auto outcome = ask_and_wait(**store, verb);
  ASSERT_TRUE(outcome && is<Execute>(*outcome));
  const auto reply = ask_and_wait(**store, a_complete(std::get<Execute>(*outcome)));
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->verdict, Verdict::done);
}

TEST_F(RedisTls, S02_a_server_that_is_not_trusted_receives_no_password) {
  const RedisServer server = server_for("IP:127.0.0.1");
  const Authority stranger(dir_.path(), "stranger");
  const RedisServer misnamed = server_for("DNS:elsewhere.example");
  const RedisServer plain("requirepass=topsecret");
  for (const std::string& refused :
       {url(server, stranger.file()), url(misnamed, authority_.file()),
        fmt::format("rediss://:topsecret@{}", server.address()), url(plain, authority_.file())}) {
    const auto store = open(refused);
    ASSERT_FALSE(store.has_value()) << refused;
    EXPECT_EQ(store.error().detail.find("topsecret"), std::string::npos) << store.error().detail;
  }
  for (const RedisServer* one : {&server, &misnamed, &plain}) {
    const std::string stats = one->ask("-a topsecret --no-auth-warning info commandstats");
    EXPECT_EQ(stats.find("cmdstat_evalsha"), std::string::npos);
    EXPECT_EQ(stats.find("cmdstat_auth:calls=2"), std::string::npos) << "by redis-cli alone";
  }
}

// A reviewer's: the cache spoke plainly, whatever its URL said.
TEST_F(RedisTls, S20_the_cache_of_a_hybrid_speaks_it_too) {
  const RedisServer server = server_for("IP:127.0.0.1");
  auto truth = open_memory(test_settings());
  auto store = open_hybrid(std::move(*truth), url(server, authority_.file()), {});
  ASSERT_TRUE(store.has_value()) << store.error().detail;
  bool is_written = false;
  for (int number = 1; number < 200 && !is_written; ++number) {
    Reserve verb = a_reserve(number);
    verb.generation = (*store)->identity().generation;
    const auto outcome = ask_and_wait(**store, verb);
    ASSERT_TRUE(outcome && is<Execute>(*outcome));
    ASSERT_TRUE(ask_and_wait(**store, a_complete(std::get<Execute>(*outcome))).has_value());
    is_written = server.ask("-a topsecret --no-auth-warning dbsize") != "0";
  }
  EXPECT_TRUE(is_written);
  auto another = open_memory(test_settings());
  const auto missing = open_hybrid(std::move(*another), url(server, dir_.path() / "none.pem"), {});
  EXPECT_FALSE(missing.has_value());
}

}  // namespace
}  // namespace idem::test
