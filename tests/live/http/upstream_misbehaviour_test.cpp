#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include "support/live.hpp"
#include "support/scripted_upstream.hpp"

/// Every way an upstream can break, at twenty places of each: the client's answer, its retry's
/// answer, and how often the upstream was asked.
namespace idem::test {
namespace {

constexpr int positions = 20;
constexpr int timeout_milliseconds = 500;

const std::string answer_body =
    R"({"id":"ch_0123456789","amount":1250,"currency":"EUR","status":"captured"})";
const std::string head_start =
    "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nLocation: "
    "/charges/ch_0123456789\r\n";

std::string head_with_length(std::size_t length) {
  return head_start + "Content-Length: " + std::to_string(length) + "\r\n\r\n";
}

/// The body in as many chunks as there are positions, without the last one.
std::string chunks(int count) {
  const std::size_t size = (answer_body.size() + positions - 1) / positions;
  std::string text;
  for (std::size_t at = 0; at < answer_body.size() && count > 0; at += size, --count) {
    const auto part = answer_body.substr(at, size);
    text += std::to_string(part.size()) + "\r\n" + part + "\r\n";  // Below ten: hex and decimal.
  }
  return text;
}

const std::string plain_answer = head_with_length(answer_body.size()) + answer_body;
const std::string chunked =
    head_start + "Transfer-Encoding: chunked\r\n\r\n" + chunks(positions) + "0\r\n\r\n";

/// Where fault number `position` strikes in a text: from its first byte to before its last.
std::size_t place(int position, std::size_t bytes) {
  return static_cast<std::size_t>(position) * bytes / positions;
}

std::string up_to(const std::string& text, int position) {
  return text.substr(0, place(position, text.size()));
}

enum class FaultMeaning { stored, broken, late, released };

struct Fault {
  const char* name;
  std::size_t request_bytes;  ///< Of the body; large where the fault strikes while it arrives.
  /// `answered`: opened once the client has its answer.
  void (*play)(UpstreamConnection&, int position, Gate& answered);
  FaultMeaning (*meaning)(int position);
  /// The status and body of the answer, where one came.
  int status = 201;
  std::string (*content)(int position) = [](int) { return answer_body; };
};

FaultMeaning means_broken(int) { return FaultMeaning::broken; }
FaultMeaning means_stored(int) { return FaultMeaning::stored; }

/// Half-closed, and read on to the end, so that no reset erases what was said.
void end_gently(UpstreamConnection& connection) {
  connection.half_close();
  while (connection.read_some()) {
  }
}

constexpr std::size_t small = 40;
// More than the kernel's buffers take: at most 4 MB on the sending side.
constexpr std::size_t large_bytes = 8'000'000;
constexpr std::size_t medium = 1'000'000;

// It reads no further before the client has its answer, so that the rest is never sent.
void answer_early(UpstreamConnection& connection, int position, const char* status,
                  Gate& answered) {
  connection.wait_for_bytes(place(position, large_bytes / 8) + 1);
  connection.write("HTTP/1.1 " + std::string(status) +
                   "\r\nContent-Length: 5\r\nConnection: close\r\n\r\nearly");
  answered.wait();
}

const std::array<Fault, 15> faults{{
    {"reset", small,
     [](UpstreamConnection& c, int p, Gate&) {
       c.read_request(), c.write(up_to(plain_answer, p)), c.reset();
     },
     means_broken},
    {"fin", small,
     [](UpstreamConnection& c, int p, Gate&) {
       c.read_request(), c.write(up_to(plain_answer, p)), end_gently(c);
     },
     means_broken},
    {"garbage", small,
     [](UpstreamConnection& c, int p, Gate&) {
       c.read_request();
       const auto rest = chunked.size() - place(p, chunked.size());
       c.write(up_to(chunked, p) + std::string(rest, '\x01') + "\r\n\r\n");
       end_gently(c);
     },
     means_broken},
    {"short body", small,
     [](UpstreamConnection& c, int p, Gate&) {
       c.read_request();
       c.write(head_with_length(answer_body.size() + 1 + static_cast<std::size_t>(p) * 11) +
               answer_body);
       end_gently(c);
     },
     means_broken},
    // Bytes behind the announced length are no part of the answer (RFC 9112 §6.3).
    {"long body", small,
     [](UpstreamConnection& c, int p, Gate&) {
       c.read_request();
       c.write(head_with_length(place(p, answer_body.size())) + answer_body);
     },
     means_stored, 201, [](int p) { return up_to(answer_body, p); }},
    {"no last chunk", small,
     [](UpstreamConnection& c, int p, Gate&) {
       c.read_request();
       c.write(head_start + "Transfer-Encoding: chunked\r\n\r\n" + chunks(p + 1));
       end_gently(c);
     },
     means_broken},
    {"cut chunks", small,
     [](UpstreamConnection& c, int p, Gate&) {
       c.read_request(), c.write(up_to(chunked, p)), end_gently(c);
     },
     means_broken},
    // One to twenty interim answers before a good one; sixteen are borne.
    {"interim storm", small,
     [](UpstreamConnection& c, int p, Gate&) {
       c.read_request();
       std::string text;
       for (int i = 0; i <= p; ++i) {
         text += i % 2 == 0 ? "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                            : "HTTP/1.1 100 Continue\r\n\r\n";
       }
       c.write(text + plain_answer);
     },
     [](int p) { return p < 16 ? FaultMeaning::stored : FaultMeaning::broken; }},
    {"interim only", small,
     [](UpstreamConnection& c, int p, Gate&) {
       c.read_request();
       for (int i = 0; i < p; ++i) c.write("HTTP/1.1 102 Processing\r\n\r\n");
       end_gently(c);
     },
     means_broken},
    {"early 413", large_bytes,
     [](UpstreamConnection& c, int p, Gate& answered) {
       answer_early(c, p, "413 Content Too Large", answered);
     },
     means_stored, 413, [](int) { return std::string("early"); }},
    // A 408 while the request is still being sent proves that it was not run (§11).
    {"early 408", large_bytes,
     [](UpstreamConnection& c, int p, Gate& answered) {
       answer_early(c, p, "408 Request Timeout", answered);
     },
     [](int) { return FaultMeaning::released; }, 408, [](int) { return std::string("early"); }},
    {"reset while reading", medium,
     [](UpstreamConnection& c, int p, Gate&) { c.wait_for_bytes(place(p, medium)), c.reset(); },
     means_broken},
    {"fin while reading", medium,
     [](UpstreamConnection& c, int p, Gate&) { c.wait_for_bytes(place(p, medium)), end_gently(c); },
     means_broken},
    {"extra bytes", small,
     [](UpstreamConnection& c, int p, Gate&) {
       c.read_request();
       const std::string forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
       c.write(plain_answer + forged.substr(0, place(p, forged.size()) + 1));
     },
     means_stored},
    {"slow drip", small,
     [](UpstreamConnection& c, int p, Gate&) {
       c.read_request(), c.write(up_to(plain_answer, p));
       const auto rest = plain_answer.substr(place(p, plain_answer.size()));
       c.drip(rest, 2 * timeout_milliseconds / static_cast<int>(rest.size()) + 1);
       c.read_some();
     },
     [](int) { return FaultMeaning::late; }},
}};

struct FaultCounts {
  std::atomic<int> cases{0};
  std::atomic<int> stored_incomplete{0};
  std::atomic<int> sent_again{0};
  std::atomic<int> meaning[4]{};
};

class UpstreamMisbehaviour : public testing::Test {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    upstream_.shrink_windows();
    GatewayOptions options{.upstream = upstream_.address(), .store = dir_.path() / "idem.db"};
    options.flags = {"--upstream-timeout", timeout(), "--request-body-max", "16MiB"};
    gateway_ = std::make_unique<Gateway>(options);
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }

  virtual std::string timeout() const { return std::to_string(timeout_milliseconds) + "ms"; }

  /// Every position of every fault with these request bodies, several at a time.
  void run(bool with_large_bodies, int threads) {
    std::vector<std::pair<std::size_t, int>> cases;
    for (std::size_t fault = 0; fault < faults.size(); ++fault) {
      if ((faults[fault].request_bytes == large_bytes) != with_large_bodies) continue;
      for (int position = 0; position < positions; ++position) cases.emplace_back(fault, position);
    }
    std::atomic<std::size_t> next{0};
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        for (auto at = next++; at < cases.size(); at = next++) {
          check(cases[at].first, cases[at].second);
        }
      });
    }
    workers.clear();
    report();
  }

 private:
  void check(std::size_t number, int position) {
    const Fault& fault = faults[number];
    const auto key = std::to_string(number) + "-" + std::to_string(position);
    SCOPED_TRACE(std::string(fault.name) + " at position " + std::to_string(position));
    auto request = charge(key, "", std::string(fault.request_bytes, 'x'));
    const auto first = send_once(gateway_->address(), request);
    answered(key).open();
    const auto retry = send_once(gateway_->address(), request);
    const auto meaning = fault.meaning(position);
    const auto outcome = first.get("Idempotency-Outcome").value_or("unknown");
    ++counts_.cases;
    ++counts_.meaning[static_cast<int>(meaning)];
    switch (meaning) {
      case FaultMeaning::stored:
        EXPECT_EQ(first.status, fault.status) << first.raw << first.trouble;
        EXPECT_EQ(first.body, fault.content(position));
        EXPECT_EQ(outcome, "stored");
        EXPECT_TRUE(replays(first, retry));
        break;
      case FaultMeaning::released:
        EXPECT_EQ(first.status, fault.status) << first.raw << first.trouble;
        EXPECT_EQ(outcome, "released");
        EXPECT_EQ(retry.status, 201) << "the retry runs" << retry.raw;
        EXPECT_FALSE(retry.get("Idempotent-Replayed"));
        break;
      case FaultMeaning::broken:
      case FaultMeaning::late:
        EXPECT_TRUE(
            is_problem(first, meaning == FaultMeaning::late ? 504 : 502, "outcome_unknown"));
        EXPECT_EQ(outcome, "unknown");
        EXPECT_TRUE(is_problem(retry, 409, "outcome_unknown"));
        EXPECT_EQ(json_text(retry.body, "state"), "unknown");
        if (retry.get("Idempotent-Replayed")) ++counts_.stored_incomplete;
        break;
    }
    const int arrivals = arrivals_of(key);
    EXPECT_EQ(arrivals, meaning == FaultMeaning::released ? 2 : 1);
    if (arrivals > 1 && meaning != FaultMeaning::released) ++counts_.sent_again;
  }

  void report() {
    const auto of = [&](FaultMeaning meaning) {
      return counts_.meaning[static_cast<int>(meaning)].load();
    };
    std::printf("cases=%d unknown=%d stored=%d released=%d stored_incomplete=%d sent_again=%d\n",
                counts_.cases.load(), of(FaultMeaning::broken) + of(FaultMeaning::late),
                of(FaultMeaning::stored), of(FaultMeaning::released),
                counts_.stored_incomplete.load(), counts_.sent_again.load());
    EXPECT_EQ(counts_.stored_incomplete, 0);
    EXPECT_EQ(counts_.sent_again, 0);
  }

  int arrivals_of(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return arrivals_[key];
  }

  Gate& answered(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return answered_[key];
  }

  /// The first request with a key meets its fault; a second one would be answered well.
  void serve(UpstreamConnection& connection) {
    while (const auto head = connection.peek_head()) {
      const auto key = find_field(head->fields, "Idempotency-Key").value_or("");
      int arrival = 0;
      {
        const std::lock_guard lock(mutex_);
        arrival = ++arrivals_[key];
      }
      if (arrival > 1) {
        connection.read_request();
        connection.write(plain_answer);
        continue;
      }
      const auto dash = key.find('-');
      const auto number = static_cast<std::size_t>(std::stoi(key.substr(0, dash)));
      const Fault& fault = faults.at(number);
      fault.play(connection, std::stoi(key.substr(dash + 1)), answered(key));
      if (fault.meaning(0) != FaultMeaning::stored || fault.request_bytes != small) return;
    }
  }

  std::mutex mutex_;
  std::map<std::string, int> arrivals_;
  std::map<std::string, Gate> answered_;
  FaultCounts counts_;
  TempDir dir_;
  ScriptedUpstream upstream_{[this](UpstreamConnection& c) { serve(c); }, {.keep = false}};
  std::unique_ptr<Gateway> gateway_;
};

TEST_F(UpstreamMisbehaviour, S11_T19_T20_every_fault_at_every_position_gets_its_proper_answer) {
  run(false, 8);
}

/// Each request is longer than the kernel's buffers, so that it is really under way.
class LargeRequests : public UpstreamMisbehaviour {
 protected:
  std::string timeout() const override { return "20s"; }
};

TEST_F(LargeRequests, S11_P25_an_answer_while_the_request_is_still_being_sent) { run(true, 2); }

}  // namespace
}  // namespace idem::test
