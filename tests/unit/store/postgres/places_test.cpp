#include "store/postgres/places.hpp"

#include <gtest/gtest.h>

/// Which of a URI's servers libpq is given, and at which address.
namespace idem::postgres {
namespace {

std::string hosts_in(const std::string& uri) {
  std::string text;
  const Places places(uri);
  for (const NamedHost& host : places.hosts()) text += host.name + '|' + host.port + ' ';
  return text;
}

Peer digits(const std::string& address, const std::string& port) {
  return *numeric_peer(address, port);
}

TEST(PostgresPlaces, S11_names_are_looked_up_and_the_rest_is_left_to_libpq) {
  EXPECT_EQ(hosts_in("postgres://u@db.test:5432/d"), "db.test|5432 ");
  EXPECT_EQ(hosts_in("postgres://u:p@db.test:6000/d?sslmode=verify-full"), "db.test|6000 ");
  EXPECT_EQ(hosts_in("postgres://u@a.test:1,b.test:2,[::1]:3/d"), "a.test|1 b.test|2 ::1|3 ");
  EXPECT_EQ(hosts_in("postgres://u@a.test,b.test/d?port=7"), "a.test|7 b.test|7 ");
  EXPECT_EQ(hosts_in("postgres://u@10.0.0.1,10.0.0.2/d?port=9"), "10.0.0.1|9 10.0.0.2|9 ");
  for (const std::string alone :
       {"postgres://u@127.0.0.1/d", "postgres://u@[::1]:5433/d", "postgres:///d",
        "postgres:///d?host=/run/postgresql", "postgres:///d?host=/run/a,b.test",
        "postgres://u@db.test/d?hostaddr=10.0.0.1", "postgres:///d?service=payments",
        "postgres://u@a.test,b.test/d?port=1,2,3", "postgres://u@[::1/d", "no URI"}) {
    EXPECT_EQ(hosts_in(alone), "") << alone;
  }
}

TEST(PostgresPlaces, S11_a_host_is_connected_to_once_and_by_its_name) {
  Places places("postgres://u@a.test:1,b.test:2/d");
  places.found(0, Peers{digits("127.0.0.2", "1"), digits("::1", "1")});
  places.found(1, Peers{digits("127.0.0.3", "2")});
  EXPECT_EQ(places.peers().size(), 3U);
  const Place place = places.take(digits("::1", "1"));
  EXPECT_EQ(place.host, "a.test");
  EXPECT_EQ(place.port, "1");
  EXPECT_EQ(place.address, "::1");
  ASSERT_EQ(places.peers().size(), 1U) << "a refused login is not tried again at another address";
  places.failed("it is read-only");
  EXPECT_EQ(places.take(places.peers().front()).host, "b.test");
  EXPECT_TRUE(places.peers().empty());
  places.failed("no");
  EXPECT_EQ(places.why_none(), "it is read-only; no");
}

TEST(PostgresPlaces, S11_what_failed_is_named) {
  Places places("postgres://u:s3cret@a.test:1,b.test:2/d");
  places.found(0, std::unexpected(ConnectTrouble{false, "Host not found"}));
  places.found(1, Peers{digits("127.0.0.3", "2"), digits("::1", "2")});
  places.none_accepted({true, "no connection in time"});
  EXPECT_EQ(places.why_none(),
            "could not translate host name \"a.test\" to address: Host not found; connection to "
            "b.test (127.0.0.3):2, b.test (::1):2 failed: no connection in time");
}

}  // namespace
}  // namespace idem::postgres
