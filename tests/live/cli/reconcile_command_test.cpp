#include <fmt/format.h>

#include <set>

#include "support/reconcile_operated.hpp"
#include "support/scripted_upstream.hpp"

namespace idem::test {
namespace {

class ReconcileCommand : public ReconcileOperated {};

TEST_F(ReconcileCommand, books_that_agree_are_reported_as_such) {
  for (int i = 0; i < 5; ++i) ASSERT_EQ(ask(charge(fmt::format("k{}", i))).status, 201);
  ASSERT_EQ(ask(charge("declined", "", R"({"amount":5,"source":"tok_declined"})")).status, 402);
  const Ran people = reconcile(csv(), {"--refused", "failed"});
  EXPECT_EQ(people.exit_code, 0) << people.output;
  EXPECT_NE(people.output.find("agree           6"), std::string::npos) << people.output;
  const Ran json = reconcile(csv(), {"--json", "--refused", "failed"});
  EXPECT_EQ(json.exit_code, 0) << json.output;
  const Json report = report_of(json);
  EXPECT_TRUE(report["complete"].boolean);
  EXPECT_EQ(report["differences"].integer, 0);
  EXPECT_EQ(count(report, "agree"), 6);
  EXPECT_EQ(report["export"]["lines"].integer, 6);
  EXPECT_EQ(report["export"]["sha256"].string.size(), 64U);
  EXPECT_TRUE(report["findings"].items.empty());
}

// One of each, and every one is reported by its own name.
TEST_F(ReconcileCommand, V37_finds_lines_missing_on_either_side) {
  ASSERT_EQ(ask(charge("agrees")).status, 201);
  ASSERT_EQ(ask(charge("changed")).status, 201);
  ASSERT_EQ(ask(charge("twice")).status, 201);
  ASSERT_EQ(ask(charge("missing")).status, 201);
  ASSERT_EQ(ask(charge("charged_yet_refused", "status=402")).status, 402);
  ASSERT_EQ(ask(charge("lost", "drop-after")).status, 502);
  ASSERT_EQ(ask(charge("never", "drop-before")).status, 502);
  charge_directly("twice", ref_of("twice"));
  charge_directly("foreign", "");
  std::string text = exported("format=csv");
  const auto cut = [&](const std::string& key) {
    const auto at = text.rfind('\n', text.find("," + key + ",")) + 1;
    const std::string line = text.substr(at, text.find('\n', at) + 1 - at);
    text.erase(at, line.size());
    return line;
  };
  cut("missing");
  std::string changed = cut("changed");
  changed.replace(changed.find(",1250,"), 6, ",1251,");
  text += changed;
  const Ran ran = reconcile(file_of("charges.csv", text), {"--json"});
  EXPECT_EQ(ran.exit_code, 5) << ran.output;
  const Json report = report_of(ran);
  EXPECT_TRUE(report["complete"].boolean);
  for (const auto* kind :
       {"duplicate", "status_differs", "theirs_only", "ours_only", "amount_differs", "agree"}) {
    EXPECT_EQ(count(report, kind), 1) << kind << "\n" << ran.output;
  }
  EXPECT_EQ(count(report, "undecided"), 2);
  EXPECT_EQ(report["differences"].integer, 5);
  EXPECT_EQ(finding(report, "duplicate")["ref"].string, ref_of("twice"));
  EXPECT_EQ(finding(report, "duplicate")["lines"].items.size(), 2U);
  EXPECT_EQ(finding(report, "status_differs")["ref"].string, ref_of("charged_yet_refused"));
  EXPECT_EQ(finding(report, "ours_only")["ref"].string, ref_of("missing"));
  EXPECT_EQ(finding(report, "amount_differs")["why"].string, "ours is 1250 EUR, theirs 1251 EUR");
  EXPECT_FALSE(finding(report, "theirs_only").has("ref"));
  std::set<std::string> undecided;
  for (const Json& one : report["findings"].items) {
    if (one["kind"].string == "undecided") undecided.insert(one["why"].string);
  }
  EXPECT_EQ(undecided,
            (std::set<std::string>{"the provider has it", "the provider has no line of it"}));

  const Ran people = reconcile(file_of("charges.csv", text));
  EXPECT_EQ(people.exit_code, 5);
  EXPECT_NE(people.output.find("duplicate       " + ref_of("twice")), std::string::npos)
      << people.output;
  EXPECT_NE(people.output.find("it happened 2 times"), std::string::npos);
  // It only looked.
  EXPECT_EQ(read("/v1/keys?state=unknown")["keys"].items.size(), 2U);
}

TEST_F(ReconcileCommand, statuses_that_nobody_named_are_listed_and_say_neither_yes_nor_no) {
  ASSERT_EQ(ask(charge("settled")).status, 201);
  ASSERT_EQ(ask(charge("open")).status, 201);
  ASSERT_EQ(ask(charge("declined", "status=402")).status, 402);
  const auto line = [&](const char* key, const char* status) {
    return fmt::format("{{\"operation\":\"{}\",\"status\":\"{}\",\"id\":\"ch_{}\"}}\n", ref_of(key),
                       status, key);
  };
  const auto file =
      file_of("charges.jsonl", line("settled", "succeeded") + line("open", "requires_capture") +
                                   line("declined", "failed"));
  std::vector<std::string> words{file,     "--by",       "operation", "--status",
                                 "status", "--happened", "succeeded", "--refused",
                                 "failed", "--id",       "id"};
  const Ran people = run(words);
  EXPECT_EQ(people.exit_code, 5) << people.output;
  EXPECT_NE(people.output.find("\"requires_capture\": 1 lines"), std::string::npos)
      << people.output;
  EXPECT_EQ(people.output.find("the provider refused"), std::string::npos) << people.output;
  words.push_back("--json");
  const Json report = report_of(run(words));
  ASSERT_EQ(report["statuses_not_named"].items.size(), 1U);
  EXPECT_EQ(report["statuses_not_named"].items[0]["status"].string, "requires_capture");
  EXPECT_EQ(count(report, "agree"), 2);
  EXPECT_EQ(finding(report, "status_differs")["ref"].string, ref_of("open"));
  EXPECT_FALSE(finding(report, "status_differs")["contested"].boolean);
  EXPECT_EQ(report["lines_of_further_statuses"].integer, 0);
  // A line that may be of a charge nobody knows of is no agreement.
  std::vector<std::string> alone = words;
  alone.front() = file_of("alone.jsonl", line("settled", "succeeded") + line("open", "succeeded") +
                                             line("declined", "failed") +
                                             R"({"operation":"none","status":"held","id":"ch_7"})"
                                             "\n");
  const Ran undecided = run(alone);
  EXPECT_EQ(undecided.exit_code, 5) << undecided.output;
  const Json held = finding(report_of(undecided), "undecided");
  EXPECT_EQ(held["lines"].items.at(0)["id"].string, "ch_7");
  EXPECT_EQ(held["lines"].items.at(0)["line"].integer, 4);
  words.insert(words.end(), {"--refused", "succeeded"});
  EXPECT_EQ(run(words).exit_code, 2) << "it means one of both";
}

TEST_F(ReconcileCommand, all_ways_to_name_a_line_find_the_same) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ask(charge(fmt::format("\"k {}\"", i))).status, 201);
  charge_directly("k 1", ref_of("k%201"));
  const auto jsonl = file_of("charges.jsonl", exported("format=jsonl"));
  const std::vector<std::vector<std::string>> ways{
      {"--by", "operation"}, {"--by", "key", "--scope", "acme", "--operation", "POST /charges"}};
  for (const auto& way : ways) {
    for (const auto& file : {csv(), jsonl}) {
      std::vector<std::string> words{file, "--json", "--amount", "amount"};
      words.insert(words.end(), way.begin(), way.end());
      const Ran ran = run(words);
      EXPECT_EQ(ran.exit_code, 5) << ran.output;
      const Json report = report_of(ran);
      EXPECT_EQ(count(report, "agree"), 2) << ran.output;
      EXPECT_EQ(finding(report, "duplicate")["ref"].string, ref_of("k%201"));
      EXPECT_EQ(report["findings"].items.size(), 1U);
    }
  }
  // By the provider's own id the second charge has no record: we never received it.
  const Ran ran = run({csv(), "--json", "--by", "reference", "--our-reference", "/id"});
  EXPECT_EQ(ran.exit_code, 5) << ran.output;
  const Json report = report_of(ran);
  EXPECT_EQ(count(report, "agree"), 3) << ran.output;
  EXPECT_EQ(finding(report, "theirs_only")["lines"].items.size(), 1U);
}

TEST_F(ReconcileCommand, a_list_is_read_page_by_page) {
  for (int i = 0; i < 7; ++i) ASSERT_EQ(ask(charge(fmt::format("k{}", i))).status, 201);
  charge_directly("foreign", "");
  const auto url = "http://" + provider_->address() + "/export?limit=3";
  const Ran ran = run({"--url", url, "--next-parameter", "cursor", "--by", "operation", "--amount",
                       "amount", "--json"});
  EXPECT_EQ(ran.exit_code, 5) << ran.output;
  const Json report = report_of(ran);
  EXPECT_EQ(count(report, "agree"), 7) << ran.output;
  EXPECT_EQ(finding(report, "theirs_only")["lines"].items.at(0)["line"].integer, 8);
  EXPECT_EQ(report["export"]["lines"].integer, 8);
}

TEST_F(ReconcileCommand, a_list_stays_where_it_was_allowed_to_go) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  SharedText next;
  ScriptedUpstream elsewhere(ScriptedUpstream::answer_all);
  ScriptedUpstream list([&](UpstreamConnection& connection) {
    while (connection.read_request()) {
      connection.write_answer(R"({"data":[],"next":")" + next.get() + R"("})");
    }
  });
  const auto auth = file_of("auth", "Bearer secret\n");
  std::filesystem::permissions(auth, std::filesystem::perms::owner_read);
  for (const std::string& to :
       {"http://" + elsewhere.address() + "/x", std::string("file:///etc/passwd"),
        std::string("http://x@127.0.0.1/")}) {
    next.set(to);
    const Ran ran = run({"--url", "http://" + list.address() + "/list", "--by", "operation",
                         "--auth-file", auth, "--json"});
    EXPECT_EQ(ran.exit_code, 1) << ran.output;
    EXPECT_FALSE(report_of(ran)["complete"].boolean) << ran.output;
    EXPECT_EQ(ran.output.find("secret"), std::string::npos);
  }
  EXPECT_EQ(elsewhere.connections(), 0);
  EXPECT_NE(list.received().at(0).find("Authorization: Bearer secret\r\n"), std::string::npos);
}

TEST_F(ReconcileCommand, a_bad_line_loses_nothing_and_is_not_hidden) {
  ASSERT_EQ(ask(charge("k1")).status, 201);
  ASSERT_EQ(ask(charge("k2")).status, 201);
  std::string text = exported("format=csv");
  const auto second = text.find('\n') + 1;
  text.insert(second, "ch_0,charge,\"k\"x,,,1,EUR,succeeded,2026-01-01T00:00:00Z\r\n");
  const auto file = file_of("charges.csv", text + "a,b\r\n");
  const Ran ran = reconcile(file, {"--json"});
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  EXPECT_NE(ran.output.find(file + ":2:16: there is text after a closing quote"), std::string::npos)
      << ran.output;
  EXPECT_NE(ran.output.find(file + ":5:4: has 2 fields, and the first line 9"), std::string::npos);
  const Json report = report_of(ran);
  EXPECT_FALSE(report["complete"].boolean);
  EXPECT_EQ(count(report, "agree"), 2);
  EXPECT_EQ(report["export"]["bad_lines"].integer, 2);
  EXPECT_EQ(report["bad_lines"].items.size(), 2U);
  EXPECT_NE(reconcile(file).output.find("INCOMPLETE: 2 lines"), std::string::npos);
}

TEST_F(ReconcileCommand, amounts_in_major_units_are_compared_by_their_scale) {
  ASSERT_EQ(ask(charge("k", "", R"({"amount":1250,"currency":"EUR"})")).status, 201);
  const auto of = [&](const std::string& amount) {
    return file_of("c.csv", "operation,amount,currency\n" + ref_of("k") + "," + amount + ",eur\n");
  };
  const std::vector<std::string> scaled{"--by",       "operation", "--amount", "amount",
                                        "--currency", "currency",  "--scale",  "2"};
  const auto run_on = [&](const std::string& file, std::vector<std::string> words) {
    words.insert(words.begin(), file);
    return run(words);
  };
  EXPECT_EQ(run_on(of("12.50"), scaled).exit_code, 0);
  EXPECT_EQ(run_on(of("12.51"), scaled).exit_code, 5);
  EXPECT_EQ(run_on(of("12.5"), {"--by", "operation", "--amount", "amount"}).exit_code, 5);
  EXPECT_EQ(run_on(of("\"12,50\""), scaled).exit_code, 1) << "nobody knows what that comma is";
}

// The lost answer is settled by the line, with the line as its answer; nothing runs again.
TEST_F(ReconcileCommand, V29_resolve_settles_matched_records_with_the_line_as_evidence) {
  ASSERT_EQ(ask(charge("lost", "drop-after")).status, 502);
  ASSERT_EQ(ask(charge("twice", "drop-after")).status, 502);
  charge_directly("twice", ref_of("twice"));
  const Ran ran =
      reconcile(csv(), {"--json", "--resolve", "--response-status", "201", "--response-header",
                        "X-Found: by comparison", "--reason", "month's end"});
  EXPECT_EQ(ran.exit_code, 5) << "a duplicate stays one: " << ran.output;
  const Json report = report_of(ran);
  EXPECT_EQ(finding(report, "undecided")["resolved_as"].string, "completed") << ran.output;
  EXPECT_FALSE(finding(report, "duplicate").has("resolved_as"));
  const Json record = read("/v1/keys/" + ref_of("lost"));
  EXPECT_EQ(record["state"].string, "completed");
  const Json& evidence = record["evidence"].items.back();
  EXPECT_EQ(evidence["source"].string, "operator:grace");
  EXPECT_EQ(evidence["reason"].string, "month's end");
  for (const auto& part :
       {std::string("charges.csv"), std::string("line 2"), report["export"]["sha256"].string}) {
    EXPECT_NE(evidence["evidence"].string.find(part), std::string::npos)
        << evidence["evidence"].string;
  }
  const auto replay = ask(charge("lost"));
  EXPECT_EQ(replay.status, 201);
  EXPECT_EQ(replay.get("X-Found"), "by comparison");
  EXPECT_EQ(replay.get("Idempotent-Replayed"), "true");
  EXPECT_EQ(parse_json(replay.body).value_or(Json{})["id"].string, "ch_1") << replay.body;
  EXPECT_EQ(effects("lost"), 1);
  EXPECT_EQ(read("/v1/keys/" + ref_of("twice"))["state"].string, "unknown");
}

TEST_F(ReconcileCommand, a_line_of_an_earlier_record_is_not_called_foreign) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  const std::string created = read("/v1/keys/" + ref_of("k"))["created_at"].string;
  // A period that begins an hour after the record: only the line is in it.
  const std::string from = "2100-01-01T00:00:00Z";
  const auto file = file_of(
      "c.csv", "operation,amount,currency,at\n" + ref_of("k") + ",1250,EUR,2100-01-02T00:00:00Z\n");
  const std::vector<std::string> words{file,     "--by",   "operation",  "--amount",
                                       "amount", "--json", "--currency", "currency",
                                       "--time", "at",     "--from",     from};
  const Ran ran = run(words);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_EQ(count(report_of(ran), "agree"), 1) << ran.output;
  const auto foreign = file_of("c.csv", "operation,amount,currency,at\n" + std::string(32, '0') +
                                            ",1250,EUR,2100-01-02T00:00:00Z\n");
  EXPECT_EQ(count(report_of(run(words)), "theirs_only"), 1);
}

TEST_F(ReconcileCommand, an_incomplete_or_contradictory_command_is_refused) {
  const auto file = csv();
  for (const auto& words : std::vector<std::vector<std::string>>{
           {},
           {file, "--url", "http://127.0.0.1/"},
           {file},
           {file, "--by", "name"},
           {file, "--by", "derived"},
           {file, "--by", "operation", "--format", "xml"},
           {file, "--by", "operation", "--status", "status"},
           {file, "--by", "operation", "--from", "yesterday"},
           {file, "--by", "operation", "--slack", "5"},
           {file, "--by", "operation", "--from", "2026-01-02T00:00:00Z", "--to",
            "2026-01-01T00:00:00Z"},
           {file, "--by", "operation", "--resolve"},
           {file, "--by", "operation", "--resolve", "--response-status", "201"},
           {file, "--by", "operation", "--resolve-absent"}}) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.exit_code, 2) << fmt::format("{}", fmt::join(words, " ")) << "\n" << ran.output;
  }
  EXPECT_EQ(run({file, "--by", "operation", "--match", "nothing"}).exit_code, 1);
  EXPECT_EQ(run({"/nowhere.csv", "--by", "operation"}).exit_code, 2);
  gateway_->terminate();
  EXPECT_EQ(run({file, "--by", "operation"}).exit_code, 3);
}

}  // namespace
}  // namespace idem::test
