#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "support/live.hpp"

/// The race that no proxy can win by looking: an upstream closes its idle connection at the moment
/// at which the next request is sent on it.
namespace idem::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr int requests_all = 5'000;
constexpr int lanes = 4;
constexpr microseconds jitter{2'000};

/// The upstream's knowledge of one key.
struct Entry {
  int effects = 0;     ///< How often its request was read whole, answered or not.
  bool first = false;  ///< The answered one was the first request on its connection.
};

/// Answers each request and closes the connection within 2 ms of the moment at which the next one
/// of that lane is to be expected. It has read the bytes that arrived by then and drops them, or
/// never reads them.
class RacingUpstream {
 public:
  explicit RacingUpstream(unsigned seed)
      : random_(seed),
        listener_(listen_anywhere()),
        address_(local_address(listener_)),
        thread_([this] { run(); }) {}

  ~RacingUpstream() {
    stopping_ = true;
    // Wakes the poll: one more connection.
    const auto wake = Socket::connect_to(address_);
    thread_.join();
    for (auto& line : open_) line.socket.close();
    ::close(listener_);
  }

  const std::string& address() const { return address_; }

  Entry entry(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return ledger_[key];
  }

 private:
  struct Line {
    Socket socket;
    std::string unread{};
    int answered = 0;
    Clock::time_point close_at = Clock::time_point::max();
  };

  void run() {
    while (!stopping_) {
      std::vector<pollfd> fds{{.fd = listener_, .events = POLLIN, .revents = 0}};
      auto next = Clock::now() + std::chrono::seconds(1);
      for (const auto& line : open_) {
        fds.push_back({.fd = line.socket.fd(), .events = POLLIN, .revents = 0});
        next = std::min(next, line.close_at);
      }
      const auto wait = std::max(next - Clock::now(), Clock::duration::zero());
      const timespec limit{
          .tv_sec = 0,
          .tv_nsec = std::min<long>(std::chrono::nanoseconds(wait).count(), 999'999'999)};
      ::ppoll(fds.data(), fds.size(), &limit, nullptr);
      for (std::size_t i = 0; i < open_.size(); ++i) look_at(open_[i], fds[i + 1].revents != 0);
      std::erase_if(open_, [](const Line& line) { return !line.socket.open(); });
      if (fds[0].revents == 0) continue;
      if (const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); fd >= 0) {
        open_.push_back({.socket = Socket(fd)});
      }
    }
  }

  void look_at(Line& line, bool readable) {
    if (Clock::now() >= line.close_at) return end(line);
    if (!readable) return;
    if (line.socket.receive(line.unread) != Socket::Received::bytes) return line.socket.close();
    if (const auto request = take(line)) answer(line, *request);
  }

  std::optional<RequestMessage> take(Line& line) {
    auto request = parse_request(line.unread);
    if (!request) return std::nullopt;
    line.unread.erase(0, request->bytes);
    const std::lock_guard lock(mutex_);
    auto& entry = ledger_[key_of(*request)];
    ++entry.effects;
    entry.first = line.answered == 0;
    return request;
  }

  static std::string key_of(const RequestMessage& request) {
    return find_field(request.head.fields, "Idempotency-Key").value_or("");
  }

  void answer(Line& line, const RequestMessage& request) {
    const auto now = Clock::now();
    const auto key = key_of(request);
    auto& pace = paces_.at(static_cast<std::size_t>(key[0] - '0'));
    if (pace.answered != Clock::time_point{}) {
      const auto gap = std::min<Clock::duration>(now - pace.answered, std::chrono::seconds(1));
      pace.gap += (gap - pace.gap) / 8;
    }
    line.socket.send_all("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok");
    ++line.answered;
    pace.answered = Clock::now();
    std::uniform_int_distribution<long> around(-jitter.count(), jitter.count());
    line.close_at = pace.answered + pace.gap + microseconds(around(random_));
  }

  /// One of three: it closes; it resets; it reads all that has come, as if it did the work and
  /// died.
  void end(Line& line) {
    switch (random_() % 3) {
      case 0:
        return line.socket.close();
      case 1:
        return line.socket.reset();
      default:
        while (line.socket.readable_within(0)) {
          if (line.socket.receive(line.unread) != Socket::Received::bytes) break;
        }
        take(line);
        return line.socket.close();
    }
  }

  /// How soon after an answer the lane's next request comes, as seen here.
  struct Pace {
    Clock::time_point answered{};
    Clock::duration gap{};
  };

  std::mt19937 random_;
  const int listener_;
  const std::string address_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::map<std::string, Entry> ledger_;
  std::array<Pace, lanes> paces_{};
  std::vector<Line> open_;
  std::thread thread_;
};

struct Tally {
  std::atomic<int> kept{0};         ///< Answered on the pooled connection.
  std::atomic<int> replaced{0};     ///< Answered on a fresh one: "not executed" on the dead one.
  std::atomic<int> unreachable{0};  ///< 503, "not executed".
  std::atomic<int> unknown_executed{0};
  std::atomic<int> unknown_unread{0};
  std::atomic<int> wrong_verdicts{0};  ///< "Not executed" about requests that were read whole.
  std::atomic<int> doubled{0};
};

class KeepAliveRace : public testing::Test {
 protected:
  void SetUp() override { IDEM_NEED_PROGRAM("idem"); }

  /// A client that never waits; one connection, so that it stays with one loop and its one pool.
  void run_lane(int lane, const std::string& address) {
    auto client = std::make_unique<Connection>(address);
    for (int i = 0; i < requests_all / lanes; ++i) {
      const auto key = std::to_string(lane) + "-" + std::to_string(i);
      const auto answer = client->exchange(charge(key));
      judge(key, i == 0, answer);
      if (answer.status == 0) client = std::make_unique<Connection>(address);
    }
  }

  void judge(const std::string& key, bool first_of_lane, const Response& answer) {
    const auto entry = upstream_.entry(key);
    EXPECT_LE(entry.effects, 1) << key;
    if (entry.effects > 1) ++tally_.doubled;
    if (answer.status == 201) {
      EXPECT_EQ(entry.effects, 1) << key;
      ++(entry.first && !first_of_lane ? tally_.replaced : tally_.kept);
      if (entry.effects > 1) ++tally_.wrong_verdicts;
    } else if (answer.status == 503) {
      EXPECT_TRUE(is_problem(answer, 503, "upstream_unreachable"));
      EXPECT_EQ(entry.effects, 0) << key;
      ++tally_.unreachable;
      if (entry.effects > 0) ++tally_.wrong_verdicts;
    } else {
      EXPECT_TRUE(is_problem(answer, 502, "outcome_unknown")) << answer.trouble;
      ++(entry.effects == 0 ? tally_.unknown_unread : tally_.unknown_executed);
    }
  }

  static unsigned seed_of_this_run() {
    const char* given = std::getenv("IDEM_SEED");
    return given != nullptr ? static_cast<unsigned>(std::atoll(given)) : std::random_device{}();
  }

  const unsigned seed_ = seed_of_this_run();
  RacingUpstream upstream_{seed_};
  Tally tally_;
  TempDir dir_;
};

TEST_F(KeepAliveRace, T66_S11_nothing_is_called_not_executed_that_was_read) {
  GatewayOptions options{.upstream = upstream_.address(), .store = dir_.path() / "idem.db"};
  options.flags = {"--threads", std::to_string(lanes), "--keepalive-idle", "10s"};
  const Gateway gateway(options);
  ASSERT_TRUE(gateway.running());
  std::printf("seed=%u\n", seed_);
  {
    std::vector<std::jthread> clients;
    for (int lane = 0; lane < lanes; ++lane) {
      clients.emplace_back([this, lane, &gateway] { run_lane(lane, gateway.address()); });
    }
  }
  // Late reads count too: every key is looked at once more.
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < requests_all / lanes; ++i) {
      EXPECT_LE(upstream_.entry(std::to_string(lane) + "-" + std::to_string(i)).effects, 1);
    }
  }
  const int proven = tally_.replaced + tally_.unreachable;
  const int not_executed = proven + tally_.unknown_unread;
  std::printf(
      "n=%d kept=%d replaced=%d unreachable=%d unknown_executed=%d unknown_unread=%d "
      "wrong_verdicts=%d doubled=%d recall=%.3f\n",
      requests_all, tally_.kept.load(), tally_.replaced.load(), tally_.unreachable.load(),
      tally_.unknown_executed.load(), tally_.unknown_unread.load(), tally_.wrong_verdicts.load(),
      tally_.doubled.load(), not_executed == 0 ? 1.0 : static_cast<double>(proven) / not_executed);
  EXPECT_EQ(tally_.wrong_verdicts, 0);
  EXPECT_EQ(tally_.doubled, 0);
  EXPECT_GT(tally_.replaced, 0) << "no connection was closed in time: nothing was raced";
}

}  // namespace
}  // namespace idem::test
