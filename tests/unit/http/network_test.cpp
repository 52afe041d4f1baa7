#include "http/network.hpp"
#include "loop/asio.hpp"

#include <gtest/gtest.h>

#include "gateway/bounded_cache.hpp"

namespace idem::test {
namespace {

using http::Network;
using http::PeerAddress;

PeerAddress address(const std::string& text) {
  return http::peer_address_of(asio::ip::make_address(text));
}

bool holds(const std::string& network, const std::string& host) {
  const auto parsed = Network::parse(network);
  EXPECT_TRUE(parsed) << parsed.error();
  return parsed && parsed->contains(address(host));
}

TEST(Network, S09_holds_the_addresses_of_its_prefix) {
  EXPECT_TRUE(holds("192.0.2.7/32", "192.0.2.7"));
  EXPECT_FALSE(holds("192.0.2.7/32", "192.0.2.8"));
  EXPECT_TRUE(holds("10.0.0.0/8", "10.255.255.255"));
  EXPECT_FALSE(holds("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(holds("192.0.2.128/25", "192.0.2.255"));
  EXPECT_FALSE(holds("192.0.2.128/25", "192.0.2.127"));
  EXPECT_TRUE(holds("172.16.0.0/12", "172.31.0.1"));
  EXPECT_FALSE(holds("172.16.0.0/12", "172.32.0.1"));
  EXPECT_TRUE(holds("2001:db8::/32", "2001:db8:ffff::1"));
  EXPECT_FALSE(holds("2001:db8::/32", "2001:db9::1"));
  EXPECT_TRUE(holds("2001:db8::8/125", "2001:db8::f"));
  EXPECT_FALSE(holds("2001:db8::8/125", "2001:db8::10"));
  EXPECT_TRUE(holds("::1/128", "::1"));
}

TEST(Network, S09_an_ipv4_client_is_one_however_it_is_spelt) {
  EXPECT_TRUE(holds("192.0.2.0/24", "::ffff:192.0.2.9"));
  EXPECT_FALSE(holds("192.0.2.0/24", "::ffff:192.0.3.9"));
  EXPECT_FALSE(holds("::/1", "::ffff:192.0.2.9")) << "no IPv6 range holds an IPv4 client";
  EXPECT_FALSE(holds("::/1", "192.0.2.9"));
  EXPECT_FALSE(holds("192.0.2.0/24", "c000:200::"));
}

TEST(Network, S09_a_malformed_network_is_refused) {
  for (const auto* text : {"",
                           "/",
                           "/8",
                           "10.0.0.0",
                           "10.0.0.0/",
                           "10.0.0.0/33",
                           "10.0.0.0/-1",
                           "10.0.0.0/+8",
                           "10.0.0.0/08",
                           "10.0.0.0/8 ",
                           " 10.0.0.0/8",
                           "10.0.0.0/8/8",
                           "10.0.0.1/8",
                           "10.0.0/8",
                           "10.0.0.00/8",
                           "010.0.0.0/8",
                           "0x0a.0.0.0/8",
                           "0.0.0.0/0",
                           "::/0",
                           "::1/129",
                           "fe80::%lo/10",
                           "::ffff:10.0.0.0/104",
                           "2001:db8::1/32",
                           "localhost/32",
                           "10.0.0.0/255.0.0.0",
                           "*"}) {
    const auto parsed = Network::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().find('"' + std::string(text) + '"'), std::string::npos);
  }
}

TEST(BoundedCache, believes_nothing_longer_than_it_may_and_holds_no_more_than_it_may) {
  using gateway::BoundedCache;
  const MonotonicTime start{};
  BoundedCache<int> cache(2);
  cache.put("a", 1, start + Millis(10));
  EXPECT_EQ(cache.find("a", start + Millis(9)), 1);
  EXPECT_FALSE(cache.find("a", start + Millis(10)));
  cache.put("b", 2, start + Millis(100));
  cache.put("a", 3, start + Millis(100));
  cache.put("c", 4, start + Millis(100));
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_FALSE(cache.find("a", start)) << "the oldest goes";
  EXPECT_EQ(cache.find("b", start), 2);
  EXPECT_EQ(cache.find("c", start), 4);
  cache.clear();
  EXPECT_FALSE(cache.find("b", start));
  EXPECT_EQ(cache.size(), 0u);
}

}  // namespace
}  // namespace idem::test
