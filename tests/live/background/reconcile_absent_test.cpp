#include <fmt/format.h>

#include <string>
#include <vector>

#include "support/reconcile_operated.hpp"
#include "support/scripted_upstream.hpp"

/// When `idem reconcile` believes that what is not in an export did not happen: a retry then runs
/// again, and what was only not listed is done twice (protocol.md §19).
namespace idem::test {
namespace {

class ReconcileAbsent : public ReconcileOperated {
 protected:
  static constexpr const char* begin = "2020-01-01T00:00:00Z";
  /// A period that all records of a test lie in, and an export that was made behind it: that
  /// nothing is left for the server to refuse but its moment.
  static constexpr const char* end = "2100-01-01T00:00:00Z";
  static constexpr const char* behind = "2100-01-03T00:00:00Z";

  static std::vector<std::string> absent(const std::string& from = begin,
                                         const std::string& to = end,
                                         const std::string& observed = behind) {
    return {"--json",
            "--resolve",
            "--resolve-absent",
            "--response-status",
            "201",
            "--from",
            from,
            "--to",
            to,
            "--slack",
            "1ms",
            "--observed-at",
            observed,
            "--export-delay",
            "1ms"};
  }
  /// The export without the lines of these keys.
  std::string without(const std::vector<std::string>& keys) {
    std::string text = exported("format=csv");
    for (const std::string& key : keys) {
      const auto at = text.rfind('\n', text.find("," + key + ",")) + 1;
      text.erase(at, text.find('\n', at) + 1 - at);
    }
    return text;
  }
  /// Why the record that nobody knows was left as it is.
  std::string left(const std::string& text, const std::vector<std::string>& words = absent()) {
    const Ran ran = reconcile(file_of("charges.csv", text), words);
    EXPECT_NE(ran.exit_code, 0) << ran.output;
    return left(ran);
  }
  static std::string left(const Ran& ran) {
    return finding(report_of(ran), "undecided")["left"].string;
  }
  std::string state_of(const std::string& key) {
    return read("/v1/keys/" + ref_of(key))["state"].string;
  }
  std::string created(const std::string& key) {
    return read("/v1/keys/" + ref_of(key))["created_at"].string;
  }
  /// Charges until one of them is made after this moment by the store's clock; its key.
  std::string charge_until(const std::string& moment, std::vector<std::string>& keys) {
    for (int i = 0; i < 1'000'000; ++i) {
      keys.push_back(fmt::format("tick{}", keys.size()));
      EXPECT_EQ(ask(charge(keys.back())).status, 201);
      if (created(keys.back()) > moment) break;
    }
    return keys.back();
  }
};

// An export of a certain moment and period proves an absence, and the server judges
// the moment.
TEST_F(ReconcileAbsent, S19_an_absence_settles_a_record_only_on_request) {
  ASSERT_EQ(ask(charge("never", "drop-before")).status, 502);
  EXPECT_EQ(reconcile(csv(), {"--json", "--resolve", "--response-status", "201"}).exit_code, 0);
  EXPECT_EQ(state_of("never"), "unknown");
  // Nothing shows that a line of it would have been found.
  EXPECT_EQ(left(without({})), "no line matches a record");
  ASSERT_EQ(ask(charge("known")).status, 201);
  charge_directly("foreign", "");
  EXPECT_EQ(left(without({})), "there are lines that match no record");
  // No moment of which anybody can have an export.
  EXPECT_TRUE(left(without({"foreign"})).starts_with("refused: "));
  // Nor does a period prove anything that begins or ends within the attempt.
  const std::string outside_of = "it may have run outside of the period";
  EXPECT_EQ(left(without({"foreign"}), absent(created("never"))), outside_of);
  ASSERT_EQ(ask(charge("later", "drop-before")).status, 502);
  EXPECT_EQ(left(without({"foreign"}), absent(begin, created("later"))), outside_of);
  EXPECT_EQ(state_of("never"), "unknown");
  EXPECT_EQ(state_of("later"), "unknown");

  std::vector<std::string> ticks;
  const std::string over = read("/v1/keys/" + ref_of("later"))["locked_until"].string;
  const std::string to = created(charge_until(over, ticks));
  const std::size_t within = ticks.size();
  const std::string observed = created(charge_until(to, ticks));
  std::vector<std::string> outside{"foreign"};
  outside.insert(outside.end(), ticks.begin() + static_cast<std::ptrdiff_t>(within), ticks.end());
  const Ran late = reconcile(file_of("c.csv", without(outside)), absent(begin, to, observed));
  EXPECT_EQ(late.exit_code, 0) << late.output;
  EXPECT_EQ(finding(report_of(late), "undecided")["resolved_as"].string, "failed_retryable");
  EXPECT_EQ(state_of("never"), "failed_retryable");
  EXPECT_EQ(state_of("later"), "failed_retryable");
  const Json record = read("/v1/keys/" + ref_of("never"));
  const Json& evidence = record["evidence"].items.back();
  EXPECT_LT(evidence["observed_at"].string, observed) << "what is listed late may not be in it yet";
  EXPECT_GE(evidence["observed_at"].string, to);
  EXPECT_NE(evidence["evidence"].string.find("that was made at " + observed), std::string::npos);
  EXPECT_EQ(ask(charge("never")).status, 201);
  EXPECT_EQ(effects("never"), 1);
}

// Cut at the end of a line, an export can be read to its end: what was charged counted as absent,
// and was charged again.
TEST_F(ReconcileAbsent, S19_an_export_without_the_charges_that_ran_proves_no_absence) {
  ASSERT_EQ(ask(charge("first")).status, 201);
  ASSERT_EQ(ask(charge("lost", "drop-after")).status, 502);
  ASSERT_EQ(ask(charge("last")).status, 201);
  const Ran ran = reconcile(file_of("cut.csv", without({"lost", "last"})), absent());
  EXPECT_EQ(ran.exit_code, 5) << ran.output;
  EXPECT_EQ(left(ran), "the export lacks lines of records that ran");
  EXPECT_EQ(count(report_of(ran), "ours_only"), 1);
  EXPECT_EQ(state_of("lost"), "unknown");
  EXPECT_EQ(effects("lost"), 1);
}

TEST_F(ReconcileAbsent, S19_an_export_that_was_not_read_whole_proves_no_absence) {
  ASSERT_EQ(ask(charge("known")).status, 201);
  ASSERT_EQ(ask(charge("lost", "drop-after")).status, 502);
  const std::string whole = without({"lost"});
  for (const std::string& cut : {whole + "x\n", whole + "ch_9,charge",
                                 whole.substr(0, whole.find_last_not_of("\r\n") + 1)}) {
    const Ran ran = reconcile(file_of("cut.csv", cut), absent());
    EXPECT_EQ(ran.exit_code, 1) << ran.output;
    EXPECT_FALSE(report_of(ran)["complete"].boolean) << ran.output;
    EXPECT_EQ(count(report_of(ran), "agree"), 1) << ran.output;
    EXPECT_EQ(left(ran), "the export was not read completely");
  }
  EXPECT_TRUE(left(whole).starts_with("refused: ")) << "nothing else stood against it";
  EXPECT_EQ(state_of("lost"), "unknown");
}

// The first page of a list that is paged in an unexpected way is the whole list only by a guess.
TEST_F(ReconcileAbsent, S19_a_list_proves_no_absence_unless_it_states_its_end) {
  ASSERT_EQ(ask(charge("known")).status, 201);
  const auto line = exported("format=jsonl");
  ASSERT_EQ(ask(charge("lost", "drop-after")).status, 502);
  SharedText body;
  ScriptedUpstream list([&](UpstreamConnection& connection) {
    while (connection.read_request()) connection.write_answer(body.get());
  });
  const auto page = [&](const std::string& more) {
    body.set(R"({"data":[)" + line.substr(0, line.find('\n')) + "]" + more + "}");
    std::vector<std::string> words{"--url",      "http://" + list.address() + "/list",
                                   "--by",       "operation",
                                   "--status",   "status",
                                   "--happened", "succeeded"};
    const auto more_words = absent();
    words.insert(words.end(), more_words.begin(), more_words.end());
    const Ran ran = run(words);
    EXPECT_EQ(ran.exit_code, 5) << ran.output;
    EXPECT_TRUE(report_of(ran)["complete"].boolean) << ran.output;
    EXPECT_EQ(count(report_of(ran), "agree"), 1) << ran.output;
    return left(ran);
  };
  EXPECT_EQ(page(""), "the list does not say where it ends");
  EXPECT_EQ(page(R"(,"links":{"next":null})"), "the list does not say where it ends");
  for (const auto* next_link : {R"(,"next":null)", R"(,"next":"")", R"(,"next":false)",
                                R"(,"has_more":false)", R"(,"hasMore":false)"}) {
    EXPECT_TRUE(page(next_link).starts_with("refused: ")) << next_link;
  }
  EXPECT_EQ(state_of("lost"), "unknown");
}

TEST_F(ReconcileAbsent, an_absence_that_would_prove_nothing_is_refused) {
  const auto file = csv();
  const std::vector<std::string> all{
      "--from", begin, "--to", "2026-01-01T00:00:00Z", "--observed-at", "2026-01-02T00:00:00Z"};
  const auto run_with = [&](std::vector<std::string> words, const char* by = "operation") {
    words.insert(words.begin(), {file, "--by", by, "--status", "status", "--happened", "succeeded",
                                 "--resolve", "--response-status", "201", "--resolve-absent"});
    return run(words);
  };
  const auto but = [&](const std::string& option) {
    auto words = all;
    const auto at = std::ranges::find(words, option);
    words.erase(at, at + 2);
    return run_with(words);
  };
  EXPECT_EQ(run_with(all).exit_code, 0) << "a day is what an export may be late, unless it is said";
  for (const auto* option : {"--from", "--to", "--observed-at"}) {
    const Ran ran = but(option);
    EXPECT_EQ(ran.exit_code, 2) << option << ran.output;
    EXPECT_NE(ran.output.find(option), std::string::npos) << ran.output;
  }
  EXPECT_EQ(run_with(all, "reference").exit_code, 2);
  auto late = all;
  late.insert(late.end(), {"--export-delay", "25h"});
  EXPECT_EQ(run_with(late).exit_code, 2);
  auto early = all;
  early.back() = "2026-01-01T23:59:59.999Z";
  EXPECT_EQ(run_with(early).exit_code, 2);
  early.insert(early.end(), {"--export-delay", "1h"});
  EXPECT_EQ(run_with(early).exit_code, 0);
  early.back() = "soon";
  EXPECT_EQ(run_with(early).exit_code, 2);
  early = all;
  early.back() = "2025-12-31T23:59:59.999Z";
  early.insert(early.end(), {"--export-delay", "0s"});
  EXPECT_EQ(run_with(early).exit_code, 2) << "nobody has an export of what is to come";
}

}  // namespace
}  // namespace idem::test
