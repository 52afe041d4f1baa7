#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "support/live.hpp"
#include "support/scripted_upstream.hpp"

/// Clients that are slow on purpose, many at a time, and the others who are served meanwhile.
namespace idem::test {
namespace {

constexpr int slow_clients = 200;
constexpr int ordinary_requests = 100;
// Not the address that everybody else comes from.
constexpr std::string_view slow_address = "127.0.0.2";

/// Connections that send a byte now and then, and what became of each.
class SlowClients {
 public:
  struct Form {
    std::string begin;
    std::string drip;   ///< Sent again and again.
    bool reads = true;  ///< Otherwise it reads nothing of its answers.
  };

  SlowClients(const std::string& address, Form form) : form_(std::move(form)) {
    for (int i = 0; i < slow_clients; ++i) {
      auto socket = form_.reads ? Socket::connect_to(address, slow_address)
                                : Socket::connect_with_small_window(address, slow_address);
      if (socket.open() && socket.send_all(form_.begin)) ++begun_;
      all_.push_back({.socket = std::move(socket)});
    }
    thread_ = std::jthread([this] { run(); });
  }

  int begun() const { return begun_; }
  /// Waits until all were ended by the other side, or for as long as a test may take.
  void wait() { thread_.join(); }
  int ended() const { return static_cast<int>(std::ranges::count_if(all_, &One::ended)); }
  int answered_with(std::string_view start) const {
    return static_cast<int>(std::ranges::count_if(
        all_, [&](const One& one) { return one.received.starts_with(start); }));
  }
  int count_with(std::string_view text) const {
    return static_cast<int>(std::ranges::count_if(
        all_, [&](const One& one) { return one.received.find(text) != std::string::npos; }));
  }
  int silent() const { return answered_with("") - answered_with("HTTP/1.1 "); }

 private:
  struct One {
    Socket socket;
    std::string received{};
    bool ended = false;
  };

  void run() {
    const auto give_up = std::chrono::steady_clock::now() + patience;
    while (ended() < slow_clients && std::chrono::steady_clock::now() < give_up) {
      for (auto& one : all_) {
        if (!one.ended) step(one);
      }
      ::poll(nullptr, 0, 50);  // This makes them slow.
    }
  }

  void step(One& one) {
    if (!form_.reads) {
      one.ended = one.socket.hung_up();
      return;
    }
    while (one.socket.readable_within(0)) {
      if (one.socket.receive(one.received) == Socket::Received::bytes) continue;
      one.ended = true;
      return;
    }
    if (one.received.empty() && !form_.drip.empty()) one.socket.send_all(form_.drip);
  }

  Form form_;
  int begun_ = 0;
  std::vector<One> all_;
  std::jthread thread_;
};

/// Timers short enough to be waited for.
class Slowloris : public testing::Test {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    GatewayOptions options{.upstream = upstream_.address(), .store = dir_.path() / "idem.db"};
    options.flags = {"--head-timeout", "2s", "--idle-timeout",  "2s",
                     "--body-grace",   "2s", "--write-timeout", "2s"};
    gateway_ = std::make_unique<Gateway>(options);
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }

  /// Opens the slow ones, serves the others meanwhile, and waits for the end of the slow ones.
  std::unique_ptr<SlowClients> hold_off(SlowClients::Form form) {
    auto slow = std::make_unique<SlowClients>(gateway_->address(), std::move(form));
    EXPECT_EQ(slow->begun(), slow_clients);
    int served = 0;
    for (int i = 0; i < ordinary_requests; ++i) {
      const auto answer = send_once(gateway_->address(), charge("k" + std::to_string(number_++)));
      served += answer.status == 200 && answer.get("Idempotency-Outcome") == "stored" ? 1 : 0;
    }
    EXPECT_EQ(served, ordinary_requests);
    slow->wait();
    EXPECT_EQ(slow->ended(), slow_clients);
    std::printf("slow=%d ended=%d answered_408=%d; served meanwhile %d of %d\n", slow_clients,
                slow->ended(), slow->answered_with("HTTP/1.1 408"), served, ordinary_requests);
    return slow;
  }

  /// /endless never ends; everything else is answered at once.
  static void serve(UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      if (request->target() != "/endless") {
        connection.write_answer();
        continue;
      }
      connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      const std::string chunk = "4000\r\n" + std::string(0x4000, 'x') + "\r\n";
      while (connection.write(chunk)) {
      }
      return;
    }
  }

  int number_ = 0;
  TempDir dir_;
  ScriptedUpstream upstream_{serve, {.keep = false}};
  std::unique_ptr<Gateway> gateway_;
};

TEST_F(Slowloris, P26_S13_a_head_that_drips_is_ended_with_408) {
  const auto slow = hold_off({.begin = "POST /charges HTTP/1.1\r\nHost: a\r\nX: ", .drip = "a"});
  EXPECT_EQ(slow->answered_with("HTTP/1.1 408"), slow_clients);
  EXPECT_EQ(slow->count_with(R"("code":"request_timeout")"), slow_clients);
  EXPECT_EQ(upstream_.requests(), ordinary_requests);
}

TEST_F(Slowloris, P30_a_body_that_drips_is_ended_with_408_and_reserves_nothing) {
  auto request = with(charge("dripped", "", ""), "Content-Length", "100000");
  const auto slow = hold_off({.begin = to_wire(request), .drip = "x"});
  EXPECT_EQ(slow->answered_with("HTTP/1.1 408"), slow_clients);
  EXPECT_EQ(upstream_.requests(), ordinary_requests);
  const auto whole = send_once(gateway_->address(), charge("dripped"));
  EXPECT_EQ(whole.status, 200) << "the key was never reserved";
  EXPECT_FALSE(whole.get("Idempotent-Replayed"));
}

TEST_F(Slowloris, P30_chunks_that_drip_are_ended_with_408) {
  auto request = with(charge("dripped", "", ""), "Transfer-Encoding", "chunked");
  const auto slow = hold_off({.begin = to_wire(request), .drip = "1\r\nx\r\n"});
  EXPECT_EQ(slow->answered_with("HTTP/1.1 408"), slow_clients);
  EXPECT_EQ(upstream_.requests(), ordinary_requests);
}

TEST_F(Slowloris, connections_that_say_nothing_are_closed) {
  const auto slow = hold_off({.begin = "", .drip = ""});
  EXPECT_EQ(slow->silent(), slow_clients);
}

TEST_F(Slowloris, connections_that_say_no_more_are_closed) {
  const auto slow = hold_off({.begin = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n", .drip = ""});
  EXPECT_EQ(slow->answered_with("HTTP/1.1 200"), slow_clients);
}

// Also for HTTP/1.0, where a quiet close would pass for the end of the body.
TEST_F(Slowloris, answers_that_nobody_reads_are_reset) {
  for (const char* version : {"1.1", "1.0"}) {
    SCOPED_TRACE(version);
    const auto request = std::string("GET /endless HTTP/") + version + "\r\nHost: a\r\n\r\n";
    hold_off({.begin = request, .drip = "", .reads = false});
  }
}

}  // namespace
}  // namespace idem::test
