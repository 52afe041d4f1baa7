#include "connect/connect_race.hpp"

#include "connect/connect_limits.hpp"
#include "connect/connect_within.hpp"
#include "loop/asio.hpp"
#include "loop/connecting.hpp"
#include "support/black_hole.hpp"

#include <gtest/gtest.h>

#include <poll.h>

#include <algorithm>
#include <filesystem>

/// RFC 8305: which of several addresses is connected to. §11 of the protocol: none of them gets a
/// byte meanwhile.
namespace idem::test {
namespace {

using Race = ConnectRace::State;

/// Generous: nothing waits for its end.
MonotonicTime far_away() { return MonotonicClock::now() + std::chrono::seconds(30); }

Peer peer_of(const std::string& host, int port) {
  return *numeric_peer(host, std::to_string(port));
}

std::size_t open_descriptors() {
  using Entries = std::filesystem::directory_iterator;
  const auto count = std::distance(Entries("/proc/self/fd"), Entries());
  return static_cast<std::size_t>(count);
}

/// Listens at an address with the port of a black hole at another.
class OpenAddress {
 public:
  OpenAddress(const std::string& host, int port) : fd_(listen_at(host, port)) {}
  OpenAddress(const OpenAddress&) = delete;
  OpenAddress& operator=(const OpenAddress&) = delete;
  ~OpenAddress() { ::close(fd_); }
  bool listens() const { return fd_ >= 0; }
  /// A client has connected, or is about to be let in.
  bool has_been_met() const {
    pollfd waiting{fd_, POLLIN, 0};
    return ::poll(&waiting, 1, 0) == 1;
  }
  /// What the first one has sent and not taken back; it has closed or is connected.
  ssize_t first_bytes() const {
    const int met = ::accept(fd_, nullptr, nullptr);
    char byte = 0;
    const ssize_t got = ::recv(met, &byte, 1, MSG_DONTWAIT);
    ::close(met);
    return got;
  }

 private:
  int fd_;
};

TEST(HappyEyeballs, S11_families_take_turns_and_the_first_address_stays_the_first) {
  const Peer four_a = peer_of("192.0.2.1", 1);
  const Peer four_b = peer_of("192.0.2.2", 1);
  const Peer four_c = peer_of("192.0.2.3", 1);
  const Peer six_a = peer_of("2001:db8::1", 1);
  const Peer six_b = peer_of("2001:db8::2", 1);
  EXPECT_EQ(in_order_of_tries({six_a, six_b, four_a, four_b, four_c}),
            (Peers{six_a, four_a, six_b, four_b, four_c}));
  EXPECT_EQ(in_order_of_tries({four_a, six_a, four_b, six_b}),
            (Peers{four_a, six_a, four_b, six_b}));
  EXPECT_EQ(in_order_of_tries({four_b, four_a}), (Peers{four_b, four_a})) << "the resolver's order";
  EXPECT_TRUE(in_order_of_tries({}).empty());
  Peers many;
  for (int i = 0; i < 100; ++i) many.push_back(peer_of("192.0.2." + std::to_string(i), 1));
  EXPECT_EQ(in_order_of_tries(many).size(), limits::connect_addresses_max);
}

TEST(HappyEyeballs, S11_a_silent_address_gets_company_after_the_delay_and_not_before) {
  const BlackHole hole("127.0.0.2");
  ASSERT_TRUE(hole.is_black());
  const OpenAddress next("127.0.0.3", hole.port());
  ASSERT_TRUE(next.listens());
  const std::size_t open_before = open_descriptors();
  {
    ConnectRace race({peer_of("127.0.0.2", hole.port()), peer_of("127.0.0.3", hole.port())});
    const MonotonicTime start = MonotonicClock::now();
    EXPECT_EQ(race.advance(start), Race::connecting);
    EXPECT_EQ(race.advance(start + limits::connect_attempt_delay - Millis(1)), Race::connecting);
    EXPECT_FALSE(next.has_been_met());
    MonotonicTime now = start + limits::connect_attempt_delay;
    ASSERT_EQ(race.advance(now), Race::connecting);
    Race state = Race::connecting;
    while (state == Race::connecting) {
      pollfd waiting{race.descriptor(), POLLIN, 0};
      ASSERT_EQ(::poll(&waiting, 1, 30'000), 1);
      state = race.advance(now);
    }
    ASSERT_EQ(state, Race::connected);
    EXPECT_EQ(race.winner(), peer_of("127.0.0.3", hole.port()));
    const OwnedDescriptor won = race.take_socket();
    EXPECT_EQ(open_descriptors(), open_before + 3) << "the winner, and what the race waits with";
    EXPECT_EQ(next.first_bytes(), -1) << "no byte came";
  }
  EXPECT_EQ(open_descriptors(), open_before);
}

TEST(HappyEyeballs, S11_a_refusal_is_followed_at_once) {
  const BlackHole hole("127.0.0.2");
  const OpenAddress last("127.0.0.4", hole.port());
  ASSERT_TRUE(last.listens());
  // Nobody listens at the first two.
  ConnectRace race({peer_of("127.0.0.5", hole.port()), peer_of("127.0.0.6", hole.port()),
                    peer_of("127.0.0.4", hole.port())});
  const MonotonicTime start = MonotonicClock::now();
  Race state = Race::connecting;
  while (state == Race::connecting) {
    state = race.advance(start);  // No time passes.
    if (state != Race::connecting) break;
    pollfd waiting{race.descriptor(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 30'000), 1);
  }
  ASSERT_EQ(state, Race::connected);
  EXPECT_EQ(race.winner(), peer_of("127.0.0.4", hole.port()));
}

TEST(HappyEyeballs, S11_an_address_that_accepts_at_once_is_the_only_one_that_is_tried) {
  const int port = [] {
    const BlackHole there("127.0.0.7");
    return there.port();
  }();
  const OpenAddress one("127.0.0.2", port);
  const OpenAddress other("127.0.0.3", port);
  ASSERT_TRUE(one.listens() && other.listens());
  const auto met =
      connect_within({peer_of("127.0.0.2", port), peer_of("127.0.0.3", port)}, far_away());
  ASSERT_TRUE(met) << met.error().why;
  EXPECT_EQ(met->peer, peer_of("127.0.0.2", port));
  EXPECT_FALSE(other.has_been_met());
}

TEST(HappyEyeballs, S11_without_any_that_accepts_it_says_why_or_ends_at_the_deadline) {
  const BlackHole hole("127.0.0.2");
  const Peer silent = peer_of("127.0.0.2", hole.port());
  const Peer closed = peer_of("127.0.0.5", hole.port());
  const auto refused = connect_within({closed, peer_of("127.0.0.6", hole.port())}, far_away());
  ASSERT_FALSE(refused);
  EXPECT_FALSE(refused.error().is_late);
  EXPECT_EQ(refused.error().why, "Connection refused");
  const auto late = connect_within({silent, closed}, MonotonicClock::now() + Millis(400));
  ASSERT_FALSE(late);
  EXPECT_TRUE(late.error().is_late);
  const std::atomic<bool> is_abandoned = true;
  const auto abandoned = connect_within({silent, closed}, far_away(), &is_abandoned);
  ASSERT_FALSE(abandoned);
  EXPECT_TRUE(abandoned.error().is_late);
  EXPECT_FALSE(connect_within({}, far_away()));
}

// ---- On a loop ----

using ConnectOutcome = std::expected<Peer, ConnectTrouble>;

Task<void> connect_on(Loop& loop, Peers peers, MonotonicTime deadline,
                      std::optional<ConnectOutcome>& into) {
  idem::Socket socket(loop.context());
  auto connecting = connect_to_first(loop, peers, deadline, socket);
  into = co_await std::move(connecting);
  loop.stop();
}

TEST(HappyEyeballs, S11_on_a_loop_the_second_address_is_reached_within_the_deadline) {
  const BlackHole hole("127.0.0.2");
  const OpenAddress next("127.0.0.3", hole.port());
  ASSERT_TRUE(hole.is_black() && next.listens());
  std::optional<ConnectOutcome> outcome;
  Loop loop;
  Peers peers{peer_of("127.0.0.2", hole.port()), peer_of("127.0.0.3", hole.port())};
  loop.spawn(connect_on(loop, peers, far_away(), outcome));
  loop.run();
  ASSERT_TRUE(outcome && *outcome);
  EXPECT_EQ(**outcome, peers[1]);
}

TEST(HappyEyeballs, S11_on_a_loop_silence_of_all_ends_at_the_deadline) {
  const BlackHole hole("127.0.0.2");
  const BlackHole another("127.0.0.3", hole.port());
  ASSERT_TRUE(hole.is_black() && another.is_black());
  for (const int addresses : {1, 2}) {
    std::optional<ConnectOutcome> outcome;
    Loop loop;
    Peers peers{peer_of("127.0.0.2", hole.port()), peer_of("127.0.0.3", hole.port())};
    peers.resize(static_cast<std::size_t>(addresses));
    loop.spawn(connect_on(loop, peers, MonotonicClock::now() + Millis(300), outcome));
    loop.run();
    ASSERT_TRUE(outcome);
    ASSERT_FALSE(*outcome);
    EXPECT_TRUE(outcome->error().is_late);
  }
}

TEST(HappyEyeballs, S11_a_coroutine_that_is_given_up_closes_all_its_tries) {
  const BlackHole hole("127.0.0.2");
  const BlackHole another("127.0.0.3", hole.port());
  const std::size_t open_before = open_descriptors();
  std::optional<ConnectOutcome> outcome;
  {
    Loop loop;
    loop.spawn(connect_on(loop,
                          {peer_of("127.0.0.2", hole.port()), peer_of("127.0.0.3", hole.port())},
                          far_away(), outcome));
    loop.post([&] {
      EXPECT_GT(open_descriptors(), open_before);
      loop.stop();
    });
    loop.run();
  }
  EXPECT_FALSE(outcome);
  EXPECT_EQ(open_descriptors(), open_before);
}

}  // namespace
}  // namespace idem::test
