#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ostream>

#include "crash/bank.hpp"
#include "crash/judge.hpp"
#include "support/back_off.hpp"

// The process that settles unknown outcomes dies by SIGKILL between any two lines that touch the
// store, the bank or the bank's event. The next one settles the rest: once, by evidence, and
// nothing is charged twice.

namespace idem::test {
namespace {

using std::chrono::milliseconds;

/// The process that finds out, and its case.
enum class Story : std::uint8_t {
  charged,         ///< The answer was lost; the bank is asked.
  not_charged,     ///< It never charged: the first report comes too early to prove anything.
  no_report,       ///< It says nothing, and is asked once: an operator's.
  reported,        ///< The answer was lost; the bank sends an event.
  reported_early,  ///< It sends one while the attempt is under way, whose answer is lost then.
};

struct BankCase {
  std::string dies;  ///< "gateway" or "worker"
  std::string store;
  Story story;
  std::string at;  ///< As IDEM_CRASH_AT has it.
};

std::string_view name_of(Story story) {
  switch (story) {
    case Story::charged:
      return "charged";
    case Story::not_charged:
      return "not_charged";
    case Story::no_report:
      return "no_report";
    case Story::reported:
      return "reported";
    case Story::reported_early:
      return "reported_early";
  }
  return "";
}

std::string_view faults_of(Story story) {
  switch (story) {
    case Story::charged:
    case Story::no_report:
    case Story::reported:
      return "drop-after";
    case Story::not_charged:
      return "drop-before";
    case Story::reported_early:
      return "early-webhook,drop-after";
  }
  return "";
}

bool is_reported(Story story) { return story == Story::reported || story == Story::reported_early; }

std::vector<BankCase> bank_cases() {
  const std::vector<std::pair<Story, std::vector<std::string>>> points{
      {Story::charged,
       {"plan_before_commit:1", "plan_after_commit:1", "question_before_first_byte:1",
        "question_answered:1", "resolve_before_commit:1", "resolve_after_commit:1"}},
      // The first resolve is refused as too early, and the turn moved to the moment of proof.
      {Story::not_charged,
       {"resolve_after_commit:1", "plan_before_commit:2", "plan_after_commit:2",
        "question_answered:2", "resolve_before_commit:2", "resolve_after_commit:2"}},
      {Story::no_report, {"plan_before_commit:2", "plan_after_commit:2"}},
      {Story::reported, {"event_verified:1", "resolve_before_commit:1", "resolve_after_commit:1"}},
      // The second resolve is the reconciler's, by the kept event.
      {Story::reported_early,
       {"event_verified:1", "resolve_before_commit:1", "resolve_after_commit:1",
        "resolve_before_commit:2", "resolve_after_commit:2"}},
  };
  std::vector<BankCase> all;
  for (const auto& [story, ats] : points) {
    for (const auto& at : ats) {
      all.push_back({"gateway", "sqlite", story, at});
      all.push_back({"gateway", "postgres", story, at});
      if (!is_reported(story)) all.push_back({"worker", "postgres", story, at});
    }
  }
  return all;
}

std::ostream& operator<<(std::ostream& out, const BankCase& one) {
  return out << one.dies << " on " << one.store << ", " << name_of(one.story) << ", " << one.at;
}

std::string test_name(const testing::TestParamInfo<BankCase>& info) {
  const BankCase& one = info.param;
  std::string at = one.at;
  std::ranges::replace(at, ':', '_');
  return fmt::format("{}_{}_{}_{}", one.dies, one.store, name_of(one.story), at);
}

class BankPoints : public testing::TestWithParam<BankCase> {
 protected:
  bool worker_dies() const { return GetParam().dies == "worker"; }

  BankOptions options() const {
    BankOptions out{.store = GetParam().store,
                    .is_asked = !is_reported(GetParam().story),
                    .sends_events = is_reported(GetParam().story),
                    .gateway_reconciles = !worker_dies()};
    if (GetParam().story == Story::no_report) out.attempts = 1;
    if (GetParam().story != Story::not_charged) return out;
    // Asked first before "not there" proves something, and by its own pauses not again before it
    // does. A gateway rests before it asks first, a worker that finds the record does not.
    out.retry_first = out.retry_max = milliseconds(worker_dies() ? 5'000 : 3'000);
    out.grace = milliseconds(worker_dies() ? 300 : 2'000);
    return out;
  }

  /// Starts who is to die, sends the payment, and waits until it has died.
  void die_of(Bank& bank, const Request& payment) {
    const std::vector<std::string> deadly{"IDEM_CRASH_AT=" + GetParam().at};
    if (worker_dies()) {
      bank.start_worker(deadly);
    } else {
      bank.restart_gateway(deadly);
    }
    bank.ask(payment);
    Process& process = worker_dies() ? bank.worker() : bank.gateway().process();
    EXPECT_EQ(process.exit_code(), 128 + SIGKILL) << "the point was not reached";
  }

  void start_again(Bank& bank) {
    if (worker_dies()) return bank.start_worker();
    bank.restart_gateway();
    ASSERT_TRUE(bank.running()) << bank.gateway().process().output();
  }

  /// Of a record that nobody can settle: until it is left to the operator.
  static Json given_up(const Bank& bank, const std::string& key) {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (;;) {
      Json record = bank.record(key);
      if (!record["evidence"].items.empty()) return record;
      if (std::chrono::steady_clock::now() > until) return record;
      back_off();
    }
  }

  static std::vector<Json> applied(const Json& record) {
    std::vector<Json> lines;
    for (const Json& line : record["evidence"].items) {
      if (line["applied"].boolean && line["before"].string == "unknown") lines.push_back(line);
    }
    return lines;
  }

  void judge(const Bank& bank, const std::string& key, const Request& payment) const {
    const Story story = GetParam().story;
    if (story == Story::no_report) {
      const Json record = given_up(bank, key);
      EXPECT_EQ(record["state"].string, "unknown");
      ASSERT_EQ(record["evidence"].items.size(), 1U);
      EXPECT_TRUE(record["evidence"].items[0]["reason"].string.starts_with("given up"));
      EXPECT_EQ(bank.provider().effects(key), 1);
      EXPECT_TRUE(is_problem(bank.ask(payment), 409, "outcome_unknown"));
      return;
    }
    EXPECT_TRUE(bank.wait_until_settled());
    const bool is_charged = story != Story::not_charged;
    const Json record = bank.record(key);
    EXPECT_EQ(record["state"].string, is_charged ? "completed" : "failed_retryable");
    EXPECT_EQ(bank.provider().effects(key), is_charged ? 1 : 0);
    const auto lines = applied(record);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0]["source"].string, is_reported(story) ? "event:bank" : "poll:bank");
    EXPECT_FALSE(lines[0]["evidence"].string.empty());
    const auto again = bank.ask(payment);
    EXPECT_EQ(again.status, 201) << again.raw;
    EXPECT_EQ(again.get("Idempotent-Replayed").has_value(), is_charged);
    EXPECT_EQ(bank.provider().effects(key), 1);
  }
};

TEST_P(BankPoints, V19_V29_T63_the_next_one_settles_it_once_and_by_evidence) {
  IDEM_NEED_PROGRAM("idem-crash");
  const int runs = number_from("IDEM_CRASH_RUNS", 1);
  Bank bank(options());
  ASSERT_TRUE(bank.running()) << bank.gateway().process().output();
  if (GetParam().story == Story::no_report) bank.provider().queries("status=404");
  for (int i = 0; i < runs; ++i) {
    const auto key = fmt::format("k{}", i);
    const auto payment = charge(key);
    bank.provider().arm(faults_of(GetParam().story));
    ASSERT_NO_FATAL_FAILURE(die_of(bank, payment));
    ASSERT_NO_FATAL_FAILURE(start_again(bank));
    ASSERT_NO_FATAL_FAILURE(judge(bank, key, payment));
  }
  fmt::print("kills={} charges={}\n", runs, bank.provider().ledger().effects);
}

INSTANTIATE_TEST_SUITE_P(At, BankPoints, testing::ValuesIn(bank_cases()), test_name);

}  // namespace
}  // namespace idem::test
