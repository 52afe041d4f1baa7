#include "http/linger_room.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace idem::http {
namespace {

PeerAddress at(const char* text) { return peer_address_of(asio::ip::make_address(text)); }

TEST(LingerRoom, P19_places_are_bounded_by_address_and_in_all) {
  const auto room = std::make_shared<LingerRoom>(4, 2);
  std::vector<LingerRoom::Place> held;
  const auto take = [&](const char* address) {
    auto place = room->take(at(address));
    const bool taken = place.has_value();
    if (taken) held.push_back(std::move(*place));
    return taken;
  };
  EXPECT_TRUE(take("192.0.2.1"));
  EXPECT_TRUE(take("192.0.2.1"));
  EXPECT_FALSE(take("192.0.2.1")) << "it has its two";
  EXPECT_FALSE(take("::ffff:192.0.2.1")) << "the same in IPv6 spelling";
  EXPECT_TRUE(take("2001:db8::1"));
  EXPECT_TRUE(take("2001:db8::2"));
  EXPECT_FALSE(take("2001:db8::3")) << "one client has a /64";
  EXPECT_FALSE(take("192.0.2.2")) << "all are taken";
  held.clear();
  EXPECT_TRUE(take("192.0.2.2"));
  EXPECT_TRUE(take("192.0.2.1"));
}

}  // namespace
}  // namespace idem::http
