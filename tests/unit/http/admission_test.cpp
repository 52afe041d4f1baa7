#include "http/admission.hpp"
#include "loop/asio.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace idem::http {
namespace {

using asio::ip::make_address;

std::shared_ptr<Admission> admission(std::size_t all, std::size_t per_address) {
  return std::make_shared<Admission>(
      Admission::Options{.connections_max = all, .per_address_max = per_address});
}

TEST(Admission, a_place_is_held_until_it_goes) {
  const auto door = admission(2, 2);
  auto first = door->admit(make_address("192.0.2.1"));
  {
    const auto second = door->admit(make_address("192.0.2.1"));
    EXPECT_TRUE(second);
    EXPECT_FALSE(door->admit(make_address("192.0.2.2")));
    EXPECT_EQ(door->open(), 2U);
  }
  EXPECT_TRUE(door->admit(make_address("192.0.2.2")));
  auto moved = std::move(first);
  first.reset();
  EXPECT_EQ(door->open(), 1U);
  moved.reset();
  EXPECT_EQ(door->open(), 0U);
}

TEST(Admission, S22_a_trusted_proxy_is_not_one_client) {
  const auto net = [](const char* text) { return *Network::parse(text); };
  const auto door = std::make_shared<Admission>(Admission::Options{
      .connections_max = 5, .per_address_max = 1, .proxies = {net("192.0.2.0/24")}});
  std::vector<Admission::Place> places;
  const auto admit = [&](const char* address) {
    auto place = door->admit(make_address(address));
    if (place) places.push_back(std::move(*place));
    return place.has_value();
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(admit("::ffff:192.0.2.7"));
  EXPECT_TRUE(admit("198.51.100.1"));
  EXPECT_FALSE(admit("198.51.100.1"));
  door->use_proxies({net("198.51.100.0/24")});
  EXPECT_FALSE(admit("192.0.2.7"));
  EXPECT_TRUE(admit("198.51.100.1"));
  EXPECT_FALSE(admit("198.51.100.1")) << "all together are bounded as before";
  places.clear();
  EXPECT_EQ(door->open(), 0U);
}

TEST(Admission, ipv6_clients_are_counted_by_their_64_bits) {
  const auto door = admission(100, 1);
  const auto first = door->admit(make_address("2001:db8:1:2::1"));
  EXPECT_TRUE(first);
  EXPECT_FALSE(door->admit(make_address("2001:db8:1:2:ffff::9")));
  EXPECT_TRUE(door->admit(make_address("2001:db8:1:3::1")));
}

TEST(Admission, an_ipv4_client_is_the_same_in_both_spellings) {
  const auto door = admission(100, 1);
  const auto first = door->admit(make_address("192.0.2.1"));
  EXPECT_FALSE(door->admit(make_address("::ffff:192.0.2.1")));
  EXPECT_TRUE(door->admit(make_address("::ffff:192.0.2.2")));
  // The unspecified network of IPv6 is not a client of IPv4.
  EXPECT_TRUE(door->admit(make_address("::1")));
  EXPECT_TRUE(door->admit(make_address("0.0.0.0")));
}

TEST(Admission, counts_stay_right_between_threads) {
  const auto door = admission(50, 50);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 2'000; ++n) {
        const auto place = door->admit(make_address("192.0.2.1"));
        EXPECT_LE(door->open(), 50U);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(door->open(), 0U);
}

TEST(Admission, refusals_are_reported_with_their_number_and_not_each) {
  int lines = 0;
  Admission::Options options{.connections_max = 1, .per_address_max = 1, .log = {}};
  options.log = [&](LogLevel, std::string_view event, std::initializer_list<LogField>) {
    EXPECT_EQ(event, "connections_refused");
    ++lines;
  };
  const auto door = std::make_shared<Admission>(std::move(options));
  const auto first = door->admit(make_address("192.0.2.1"));
  for (int i = 0; i < 1'000; ++i) EXPECT_FALSE(door->admit(make_address("192.0.2.1")));
  EXPECT_GE(lines, 1);
  EXPECT_LT(lines, 100);
}

}  // namespace
}  // namespace idem::http
