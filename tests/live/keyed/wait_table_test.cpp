#include <gtest/gtest.h>

#include <functional>

#include "support/live.hpp"

/// The table of protocol.md §7, cell by cell, each state reached for real. (Its row "pending" and
/// its column "async" are in async_test.cpp.)
namespace idem::test {
namespace {

enum class Expected { replay, in_progress, woken, unknown, runs, expired };

struct Cell {
  const char* record;
  const char* mode;
  Expected expected;
};

void PrintTo(const Cell& cell, std::ostream* out) { *out << cell.record << "_" << cell.mode; }

class Duplicate : public testing::TestWithParam<Cell> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    ASSERT_TRUE(provider_.running());
    std::vector<std::string> flags{"--mode", GetParam().mode, "--wait-max", "5m", "--threads", "1"};
    if (record() == "expired") flags.insert(flags.end(), {"--retention", "300ms"});
    gateway_ = std::make_unique<Gateway>(GatewayOptions{.upstream = provider_.address(),
                                                        .store = dir_.path() / "idem.db",
                                                        .flags = std::move(flags)});
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
    first_ = std::make_unique<Connection>(gateway_->address());
  }

  std::string_view record() const { return GetParam().record; }
  Response ask() { return send_once(gateway_->address(), charge("k")); }

  /// Brings the record into the state of this row.
  void reach() {
    if (record() == "completed") answer_ = first_->exchange(charge("k"));
    if (record() == "failed_retryable") answer_ = first_->exchange(charge("k", "refuse=401"));
    if (record() == "unknown") answer_ = first_->exchange(charge("k", "drop-after"));
    if (record() == "in_progress") {
      first_->send(charge("k", "hold=h"));
      ASSERT_TRUE(provider_.wait_held("h", 1));
    }
    if (record() == "expired") {
      answer_ = first_->exchange(charge("k"));
      // The clock is the store's own; a replay does not move the expiry.
      while (ask().status == 201) {
      }
    }
  }

  TempDir dir_;
  Provider provider_;
  std::unique_ptr<Gateway> gateway_;
  std::unique_ptr<Connection> first_;
  Response answer_;
};

TEST_P(Duplicate, S07_gets_the_answer_of_the_table) {
  ASSERT_NO_FATAL_FAILURE(reach());
  switch (GetParam().expected) {
    case Expected::replay:
      EXPECT_TRUE(replays(answer_, ask()));
      break;
    case Expected::in_progress:
      EXPECT_TRUE(is_problem(ask(), 409, "in_progress"));
      break;
    case Expected::woken: {
      Connection waiter(gateway_->address());
      waiter.send(charge("k"));
      const auto refusing = with(charge("k"), "Prefer", "wait=0");
      EXPECT_TRUE(is_problem(send_once(gateway_->address(), refusing), 409, "in_progress"));
      EXPECT_FALSE(waiter.socket().readable_within(0));
      provider_.release("h");
      answer_ = first_->read_response();
      EXPECT_TRUE(replays(answer_, waiter.read_response()));
      break;
    }
    case Expected::unknown:
      EXPECT_TRUE(is_problem(ask(), 409, "outcome_unknown"));
      break;
    case Expected::runs: {
      const auto again = ask();
      EXPECT_EQ(again.status, 201);
      EXPECT_FALSE(again.get("Idempotent-Replayed"));
      break;
    }
    case Expected::expired:
      EXPECT_TRUE(is_problem(ask(), 410, "key_expired"));
      break;
  }
  EXPECT_EQ(provider_.effects("k"), 1) << "in whatever cell: one effect";
}

INSTANTIATE_TEST_SUITE_P(Table, Duplicate,
                         testing::Values(Cell{"in_progress", "conflict", Expected::in_progress},
                                         Cell{"in_progress", "wait", Expected::woken},
                                         Cell{"unknown", "conflict", Expected::unknown},
                                         Cell{"unknown", "wait", Expected::unknown},
                                         Cell{"failed_retryable", "conflict", Expected::runs},
                                         Cell{"failed_retryable", "wait", Expected::runs},
                                         Cell{"completed", "conflict", Expected::replay},
                                         Cell{"completed", "wait", Expected::replay},
                                         Cell{"expired", "conflict", Expected::expired},
                                         Cell{"expired", "wait", Expected::expired}),
                         [](const auto& cell) {
                           return std::string(cell.param.record) + "_" + cell.param.mode;
                         });

}  // namespace
}  // namespace idem::test
