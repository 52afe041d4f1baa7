#include "http/linger_room.hpp"
#include "loop/asio.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace idem::http {
namespace {

PeerAddress at(const char* text) { return peer_address_of(asio::ip::make_address(text)); }

/// Behind 10.0.0.0/8 are many clients.
class LingerRooms : public testing::Test {
 protected:
  explicit LingerRooms() { room_->use_proxies({*Network::parse("10.0.0.0/8")}); }
  /// The number of the place; -1: there was none.
  int take(const char* address, std::string_view scope = {}) {
    auto place = room_->take(at(address), scope);
    if (!place) return -1;
    held_.push_back(std::move(*place));
    return static_cast<int>(held_.size()) - 1;
  }
  bool ended(int number) const { return held_[static_cast<std::size_t>(number)].ended(); }

  std::shared_ptr<LingerRoom> room_ =
      std::make_shared<LingerRoom>(std::vector<Network>(), std::size_t{4}, std::size_t{2});
  std::vector<LingerRoom::Place> held_;
};

TEST_F(LingerRooms, P19_places_are_bounded_by_address_whatever_the_scope) {
  EXPECT_EQ(take("192.0.2.1", "acme"), 0);
  EXPECT_EQ(take("192.0.2.1", "globex"), 1);
  EXPECT_EQ(take("192.0.2.1", "initech"), -1) << "it has its two";
  EXPECT_EQ(take("::ffff:192.0.2.1"), -1) << "the same in IPv6 spelling";
  EXPECT_EQ(take("2001:db8::1"), 2);
  EXPECT_EQ(take("2001:db8::2"), 3);
  EXPECT_EQ(take("2001:db8::3"), -1) << "one client has a /64";
  held_.clear();
  EXPECT_EQ(take("192.0.2.1"), 0);
}

TEST_F(LingerRooms, P19_S22_behind_a_proxy_they_are_bounded_by_scope) {
  EXPECT_EQ(take("10.0.0.1", "acme"), 0);
  EXPECT_EQ(take("10.0.0.2", "acme"), 1);
  EXPECT_EQ(take("10.0.0.1", "acme"), -1) << "it has its two";
  EXPECT_EQ(take("10.0.0.1", "globex"), 2);
  EXPECT_EQ(take("192.0.2.1"), 3);
}

TEST_F(LingerRooms, P19_S22_when_all_are_taken_the_greediest_loses_its_oldest) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(take("10.0.0.1"), i) << "many clients, none of them known";
  EXPECT_EQ(take("192.0.2.1"), 3);
  EXPECT_EQ(take("10.0.0.1", "acme"), 4);
  EXPECT_TRUE(ended(0));
  EXPECT_EQ(take("10.0.0.1", "globex"), 5);
  EXPECT_TRUE(ended(1));
  EXPECT_EQ(take("10.0.0.1", "initech"), 6) << "all have one: the oldest goes";
  EXPECT_TRUE(ended(2));
  for (const int still : {3, 4, 5, 6}) EXPECT_FALSE(ended(still)) << still;
  held_.clear();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(take("10.0.0.1"), i) << "each place came back once";
  EXPECT_FALSE(ended(0));
}

}  // namespace
}  // namespace idem::http
