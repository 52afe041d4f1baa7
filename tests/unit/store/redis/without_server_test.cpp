#include "library/hybrid_url.hpp"
#include "store/redis/cache_entry.hpp"
#include "store/redis/resp.hpp"
#include "store/redis/server_check.hpp"
#include "store/redis/server_clock.hpp"
#include "store/redis/servers.hpp"
#include "store/redis/url.hpp"

#include <idem/limits.hpp>
#include <idem/open_store.hpp>

#include <gtest/gtest.h>

#include <fstream>

/// The parts of the Redis store that need no Redis.
namespace idem::redis {
namespace {

using namespace std::chrono_literals;

TEST(RedisReply, announced_sizes_are_not_trusted) {
  for (const std::string_view text : {"$1000000\r\nabc", "*1000000\r\n:1\r\n", "$5\r\nhell"}) {
    std::string_view bytes = text;
    const auto reply = take_reply(bytes);
    EXPECT_TRUE(reply && !*reply) << text;
    EXPECT_EQ(bytes, text) << "nothing is taken of a part";
  }
  for (const std::string_view text :
       {"$-2\r\n", "*-7\r\n", ":one\r\n", ":\r\n", "!3\r\nabc\r\n", "$9999999999999\r\n",
        "*99999999999\r\n", "\r\n", "$3\r\nabcd\r\n"}) {
    std::string_view bytes = text;
    EXPECT_FALSE(take_reply(bytes).has_value()) << text;
  }
  std::string deep;
  for (std::size_t i = 0; i <= limits::redis_reply_depth_max; ++i) deep += "*1\r\n";
  deep += ":1\r\n";
  std::string_view bytes = deep;
  EXPECT_FALSE(take_reply(bytes).has_value());
}

TEST(RedisReply, arguments_may_hold_any_bytes) {
  EXPECT_EQ(command({"SET", std::string_view("a\r\n\0b", 5), ""}),
            std::string("*3\r\n$3\r\nSET\r\n$5\r\na\r\n\0b\r\n$0\r\n\r\n", 30));
}

TEST(RedisUrl, says_where_and_how) {
  const auto url = parse_url("rediss://ann:p%40ss@db.example:7000/3?prefix=pay");
  ASSERT_TRUE(url.has_value()) << url.error();
  EXPECT_TRUE(url->tls.on);
  EXPECT_EQ(url->hosts, (std::vector<Address>{{"db.example", 7000}}));
  EXPECT_EQ(url->login.user, "ann");
  EXPECT_EQ(url->login.password, "p@ss");
  EXPECT_EQ(url->database, 3);
  EXPECT_EQ(url->prefix, "pay");
  const auto cluster = parse_url("redis+cluster://a:1,b:2,[::1]:3/");
  ASSERT_TRUE(cluster.has_value()) << cluster.error();
  EXPECT_EQ(cluster->hosts, (std::vector<Address>{{"a", 1}, {"b", 2}, {"::1", 3}}));
  const auto sentinels = parse_url("redis+sentinel://:secret@a,b:1/main/2");
  ASSERT_TRUE(sentinels.has_value()) << sentinels.error();
  EXPECT_EQ(sentinels->hosts, (std::vector<Address>{{"a", 26379}, {"b", 1}}));
  EXPECT_EQ(sentinels->master, "main");
  EXPECT_EQ(sentinels->database, 2);
}

TEST(RedisUrl, a_mistake_is_reported_without_the_password) {
  for (const std::string_view text : {"redis://",
                                      "redis://h:0",
                                      "redis://h:99999",
                                      "redis://h/x",
                                      "redis://h/-1",
                                      "redis://a,b",
                                      "redis://secret@h",
                                      "redis://u:secret%4@h",
                                      "redis+cluster://h/1",
                                      "redis+sentinel://h",
                                      "redis+sentinel://h/",
                                      "redis://h?prefix=",
                                      "redis://h?prefix={a}",
                                      "redis://h?prefix=a b",
                                      "redis://h?ca_file=x",
                                      "rediss://h?cert_file=x",
                                      "redis://h?secret=1",
                                      "redis://h?password_file=/nowhere/at/all",
                                      "redis://u:2024?Secret@h:1",
                                      "redis://[::1",
                                      "http://h",
                                      "redis:h"}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url.has_value()) << text;
    EXPECT_FALSE(url.error().empty());
    if (!text.starts_with("redis://h?secret")) {
      EXPECT_EQ(url.error().find("ecret"), std::string::npos) << url.error();
    }
  }
}

TEST(RedisUrl, a_store_that_is_shown_shows_no_password) {
  for (const std::string url : {"redis://u:secret@h", "postgres://u:secret@h/d",
                                "hybrid:?truth=postgres://u:secret@h/d&fast=redis://u:secret@h"}) {
    EXPECT_EQ(shown_store_url(url).find("secret"), std::string::npos) << shown_store_url(url);
    EXPECT_TRUE(check_store_url(url).has_value()) << check_store_url(url).error();
  }
}

TEST(HybridUrl, is_accepted_plainly_or_encoded) {
  for (const std::string_view text :
       {"hybrid:?truth=postgres://h/d?a=b&c=d&fast=redis://r/?prefix=p",
        "hybrid:?fast=redis://r/?prefix=p&truth=postgres://h/d?a=b&c=d",
        "hybrid:?truth=postgres%3A%2F%2Fh%2Fd%3Fa%3Db%26c%3Dd&fast=redis%3A//r/%3Fprefix=p"}) {
    const auto url = parse_hybrid_url(text);
    ASSERT_TRUE(url.has_value()) << text << ": " << url.error();
    EXPECT_EQ(url->truth, "postgres://h/d?a=b&c=d");
    EXPECT_EQ(url->fast, "redis://r/?prefix=p");
  }
  for (const std::string url :
       {"hybrid:", "hybrid:?truth=postgres://h/d", "hybrid:?fast=redis://h",
        "hybrid:truth=postgres://h/d&fast=redis://h", "hybrid:?truth=sqlite:a&fast=redis://h",
        "hybrid:?truth=redis://h&fast=redis://h", "hybrid:?truth=postgres://h/d&fast=sqlite:a",
        "hybrid:?truth=postgres://h&fast=redis://h&fast=redis://i",
        "hybrid:?truth=postgres%3&fast=redis://h"}) {
    EXPECT_FALSE(check_store_url(url).has_value()) << url;
  }
}

TEST(RedisServers, slots_are_the_clusters) {
  // Redis Cluster specification, "Keys distribution model": CRC16 of "123456789" is 0x31C3.
  EXPECT_EQ(slot_of("123456789"), 0x31C3U % cluster_slots);
  EXPECT_EQ(slot_of("foo"), 12182U);
}

TEST(RedisServerCheck, S02_T53_warns_of_settings_that_lose_records) {
  const std::string good =
      "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\nrole:master\r\ncluster_enabled:0\r\n"
      "aof_enabled:1\r\nconnected_slaves:0\r\n";
  EXPECT_FALSE(judge_server(good, {"always", {}}, false).refusal.has_value());
  EXPECT_TRUE(judge_server(good, {"always", {}}, false).warnings.empty());
  EXPECT_EQ(judge_server(good, {"everysec", {}}, false).warnings.size(), 1U);
  EXPECT_EQ(judge_server(good, {}, false).warnings.size(), 1U);
  EXPECT_TRUE(judge_server(good, {"always", {}}, true).refusal.has_value());
  EXPECT_FALSE(judge_server(good, {"always", "536870912"}, false).refusal.has_value());
  const auto small = judge_server(good, {"always", "1048576"}, false);
  ASSERT_TRUE(small.refusal.has_value()) << "the largest answer would not fit";
  EXPECT_TRUE(small.refusal->starts_with("proto-max-bulk-len is 1048576: ")) << *small.refusal;
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string info = good;
    info.replace(info.find(from), from.size(), to);
    return judge_server(info, {"always", {}}, false);
  };
  EXPECT_TRUE(with("7.0.15", "6.2.1").refusal.has_value());
  EXPECT_TRUE(with("noeviction", "volatile-lru").refusal.has_value());
  EXPECT_TRUE(with("role:master", "role:slave").is_elsewhere);
  EXPECT_EQ(with("aof_enabled:1", "aof_enabled:0").warnings.size(), 1U);
  EXPECT_EQ(with("connected_slaves:0", "connected_slaves:1").warnings.size(), 1U);
  EXPECT_TRUE(judge_server("", {"always", {}}, false).refusal.has_value());
}

TEST(RedisServerClock, S15_the_quickest_reply_counts_and_a_step_is_followed) {
  ServerClock clock;
  EXPECT_FALSE(clock.is_known());
  const MonotonicTime start(1'000s);
  const StoreTime at(5'000'000s);
  clock.observe(at, start + 20ms);
  EXPECT_EQ(clock.at(start + 20ms), at);
  clock.observe(at + 100ms, start + 105ms);  // On its way for less.
  EXPECT_EQ(clock.at(start + 105ms), at + 100ms);
  clock.observe(at + 200ms, start + 500ms);  // A slow one proves nothing.
  EXPECT_EQ(clock.at(start + 500ms), at + 495ms);
  clock.observe(at - 1h, start + 600ms);  // The server's clock was set back.
  EXPECT_EQ(clock.at(start + 600ms), at - 1h);
  clock.observe(at + 1h, start + 700ms);
  EXPECT_EQ(clock.at(start + 700ms), at + 1h);
}

TEST(RedisCacheEntry, S20_an_entry_is_of_one_store_one_record_and_whole) {
  CacheCodec codec(Secret{1});
  CacheCodec other(Secret{2});
  RecordId id;
  id.bytes.fill(7);
  const CacheEntry entry{.kind = CacheEntry::Kind::completed,
                         .fence = 12,
                         .generation = 3,
                         .until = StoreTime(50s),
                         .completed_at = StoreTime(40s),
                         .response = StoredResponse{201, {{"A", "b"}}, "body"}};
  const std::string bytes = codec.encode(id, entry);
  const auto read = codec.decode(id, bytes);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->response, entry.response);
  EXPECT_EQ(read->fence, 12U);
  EXPECT_NE(codec.store_tag(), other.store_tag());
  EXPECT_FALSE(other.decode(id, bytes).has_value());
  RecordId another = id;
  another.bytes[0] = 8;
  EXPECT_FALSE(codec.decode(another, bytes).has_value());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(codec.decode(id, damaged).has_value()) << at;
    EXPECT_FALSE(codec.decode(id, bytes.substr(0, at)).has_value()) << at;
  }
}

}  // namespace
}  // namespace idem::redis
