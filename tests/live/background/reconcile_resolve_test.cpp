#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/async.hpp"
#include "support/back_off.hpp"
#include "support/reconcile_operated.hpp"

/// Lines that settle records, and the report that is left then.
namespace idem::test {
namespace {

const std::vector<std::string> resolve{"--json", "--resolve", "--response-status", "201"};

class ReconcileResolve : public ReconcileOperated {};

// A difference that was settled still showed in the exit code.
TEST_F(ReconcileResolve, a_settled_record_is_no_difference_any_more) {
  ASSERT_EQ(ask(charge("released", "refuse=429")).status, 429);
  charge_directly("released", ref_of("released"));
  const Ran looked = reconcile(csv(), {"--json"});
  EXPECT_EQ(looked.exit_code, 5) << looked.output;
  EXPECT_EQ(report_of(looked)["differences"].integer, 1);
  const Ran ran = reconcile(csv(), resolve);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(report_of(ran)["differences"].integer, 0);
  EXPECT_EQ(count(report_of(ran), "status_differs"), 1) << "it was found all the same";
  EXPECT_EQ(finding(report_of(ran), "status_differs")["resolved_as"].string, "completed");
  EXPECT_EQ(ask(charge("released")).get("Idempotent-Replayed"), "true");
  EXPECT_EQ(effects("released"), 1);
}

// Evidence is cut to what is kept of it, and was cut within a letter: refused as no UTF-8, or as
// too long.
TEST_F(ReconcileResolve, evidence_is_not_cut_within_a_letter) {
  for (const auto* key : {"k0", "k1", "k2"}) ASSERT_EQ(ask(charge(key, "drop-after")).status, 502);
  std::string lines = "\xEF\xBB\xBF";
  for (const std::size_t shift : {0UL, 1UL, 2UL}) {
    std::string id(shift, 'x');
    for (int i = 0; i < 4000; ++i) id += "\u20AC";
    lines += fmt::format(R"({{"operation":"{}","status":"succeeded","id":"{}"}})",
                         ref_of(fmt::format("k{}", shift)), id) +
             "\n";
  }
  std::vector<std::string> words{file_of("charges.jsonl", lines),
                                 "--by",
                                 "operation",
                                 "--status",
                                 "status",
                                 "--happened",
                                 "succeeded",
                                 "--id",
                                 "id"};
  words.insert(words.end(), resolve.begin(), resolve.end());
  const Ran ran = run(words);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  for (const auto* key : {"k0", "k1", "k2"}) {
    const Json record = read("/v1/keys/" + ref_of(key));
    ASSERT_EQ(record["state"].string, "completed");
    EXPECT_TRUE(record["evidence"].items.back()["evidence"].string.ends_with("\u20AC"));
  }
}

class ReconcileAccepted : public ReconcileOperated {
 protected:
  std::vector<std::string> flags() const override { return {"--mode", "async"}; }
};

// The upstream charged and said 429 all the same; the request rested until the dispatcher would
// have run it a second time, and the comparison called that undecided.
TEST_F(ReconcileAccepted, S03_V29_a_record_that_would_run_again_is_settled_by_its_line) {
  provider_->arm("refuse=429,header=Retry-After:3600");
  const auto accepted = ask(charge("k"));
  ASSERT_EQ(accepted.status, 202) << accepted.raw;
  const std::string ref = ref_of("k");
  const auto released = [&] {
    const Json record = read("/v1/keys/" + ref);
    return record["state"].string == "pending" && record["fence"].integer > 0;
  };
  const auto give_up = std::chrono::steady_clock::now() + patience;
  while (!released() && std::chrono::steady_clock::now() < give_up) back_off();
  ASSERT_TRUE(released());
  charge_directly("k", ref);
  const Ran looked = reconcile(csv(), {"--json"});
  EXPECT_EQ(looked.exit_code, 5) << looked.output;
  EXPECT_EQ(finding(report_of(looked), "status_differs")["state"].string, "pending");
  const Ran ran = reconcile(csv(), resolve);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(finding(report_of(ran), "status_differs")["resolved_as"].string, "completed");
  const Json state = state_when_ended(gateway_->address(), accepted);
  EXPECT_EQ(state["state"].string, "completed");
  EXPECT_EQ(ask(charge("k")).get("Idempotent-Replayed"), "true");
  EXPECT_EQ(effects("k"), 1);
}

}  // namespace
}  // namespace idem::test
