#include "check/report/escape.hpp"
#include "check/report/reports.hpp"
#include "check/report/summary.hpp"
#include "core/bytes/utf8.hpp"
#include "json/value.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

namespace idem::check {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

constexpr std::array<CaseText, 5> texts{
    {{"courtesy.retry_after", Severity::courtesy, "A refusal in flight says when to retry",
      "Clients that must guess retry too often.", "RFC 9110, section 10.2.3", "None.",
      "Add Retry-After."},
     {"race.two", Severity::money, "2 concurrent requests execute once",
      "A client that times out retries while the first still runs.", "Draft 07, section 2.6",
      "The customer pays twice.", "Reserve the key with a unique index."},
     {"key.list", Severity::interoperability, "Two keys are refused",
      "It is not known which one counts.", "RFC 9651, section 3.3.3", "None.", "Answer 400."},
     {"replay.identical", Severity::correctness, "A replay is the first answer",
      "A client reads the id of its payment from it.", "Draft 07, section 2.6",
      "A client that reads another id pays again.", "Store status, fields and bytes."},
     {"restart.between", Severity::money, "A restart forgets no key", "Servers restart.",
      "Draft 07, section 2.3", "Retries after a deployment execute again.",
      "Keep keys on a disk."}}};

const std::string key = "Idempotency-Key: \"mark-1\"\r\n";
const std::string order =
    "POST /payments HTTP/1.1\r\nHost: api\r\n" + key + "\r\n{\"amount\":101}\n";

Call call_of(std::string what, std::string answer) {
  return {.what = std::move(what),
          .request = order,
          .answer = std::move(answer),
          .failure = {},
          .began = 3ms,
          .took = 41ms};
}

CaseResult result_of(std::size_t text, Outcome outcome, std::string detail = {}) {
  const bool is_skipped = outcome == Outcome::skip;
  return {.text = &texts[text],
          .outcome = outcome,
          .detail = std::move(detail),
          .calls = {},
          .times = is_skipped ? 0 : 3,
          .failures = outcome == Outcome::fail ? 2 : 0};
}

Report report_of(std::vector<CaseResult> cases) {
  return {.target = "http://127.0.0.1:9000",
          .config = "idem-check.yaml",
          .profile = "ietf",
          .seed = 18'446'744'073'709'551'615U,
          .version = "1.2.3",
          .started_at = "2026-11-27T08:00:00Z",
          .took = 65'432ms,
          .requests = 321,
          .key_mark = "mark-",
          .cases = std::move(cases),
          .cases_known = 42,
          .ended_early = {}};
}

/// A finding of each severity, in an order that is none; and one that was skipped.
Report all_severities_fail() {
  auto report = report_of({result_of(0, Outcome::fail, "The 409 has no Retry-After."),
                           result_of(1, Outcome::fail, "Both were executed."),
                           result_of(2, Outcome::fail, "201 for two keys."),
                           result_of(3, Outcome::fail, "The bodies differ."),
                           result_of(4, Outcome::skip, "No restart command is given.")});
  report.cases[1].calls = {
      call_of("both, 1 of 2",
              "HTTP/1.1 201 Created\r\nServer: x\r\nLocation: /1\r\n\r\n{\"id\":1}"),
      call_of("both, 2 of 2",
              "HTTP/1.1 201 Created\r\nServer: x\r\nLocation: /2\r\n\r\n{\"id\":2}")};
  return report;
}

Report all_pass() {
  return report_of({result_of(1, Outcome::pass), result_of(3, Outcome::pass),
                    result_of(4, Outcome::skip, "No restart command is given.")});
}

/// Attacks on each reader, bytes that are no UTF-8, and all control characters.
const std::string hostile = [] {
  std::string bytes =
      "<script>alert(1)</script>]]>--><!--&amp;\"'{0}[here](http://evil) \x1b[2J\x1b]0;x\x07";
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  bytes += "\xC2\x9B\xE2\x80\xAE\xEF\xBF\xBE\xF3\xA0\x81\x81\xED\xA0\x80";
  return bytes;
}();

Report hostile_report() {
  auto report =
      report_of({result_of(1, Outcome::fail, hostile), result_of(2, Outcome::skip, hostile),
                 result_of(3, Outcome::pass, hostile)});
  report.target = "http://127.0.0.1:9000/" + hostile;
  report.config = report.profile = report.version = report.started_at = report.key_mark = hostile;
  report.cases[0].calls = {
      {.what = hostile, .request = hostile, .answer = hostile, .failure = hostile},
      {.what = hostile,
       .request = "POST / HTTP/1.1\r\nX: y\r\n\r\n" + hostile,
       .answer = "HTTP/1.1 200 " + hostile + "\r\nIdempotency-" + hostile + ": 1\r\n\r\n" + hostile,
       .failure = {}}};
  return report;
}

std::vector<std::pair<std::string, std::string>> all_forms(const Report& report) {
  return {{"json", json_report(report)},   {"junit", junit_report(report)},
          {"sarif", sarif_report(report)}, {"html", html_report(report)},
          {"badge", badge_svg(report)},    {"terminal", terminal_report(report, false, 100)}};
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F;
}

std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

/// The value at "runs/0/tool"; fails the test where there is none.
const json::Value& at(const json::Value& value, std::string_view path) {
  static const json::Value none;
  const json::Value* found = &value;
  while (!path.empty()) {
    const auto name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    if (const auto* array = std::get_if<json::Array>(&found->is)) {
      const std::size_t index = std::stoul(std::string(name));
      found = index < array->size() ? &(*array)[index] : nullptr;
    } else {
      found = found->find(name);
    }
    if (found == nullptr) {
      ADD_FAILURE() << "no " << name;
      return none;
    }
  }
  return *found;
}
std::string text_at(const json::Value& value, std::string_view path) {
  const auto* text = std::get_if<std::string>(&at(value, path).is);
  return text != nullptr ? *text : "(no text)";
}
std::size_t size_at(const json::Value& value, std::string_view path) {
  const auto* array = std::get_if<json::Array>(&at(value, path).is);
  return array != nullptr ? array->size() : 0;
}
json::Value parsed(const std::string& text) {
  const auto value = json::parse(text);
  EXPECT_TRUE(value.has_value()) << (value ? "" : value.error().what) << ": " << text;
  return value.value_or(json::Value{});
}

TEST(CheckReport, the_verdict_is_one_sentence_with_the_numbers) {
  EXPECT_EQ(verdict_sentence(all_severities_fail()),
            "http://127.0.0.1:9000 fails the profile ietf: 4 findings (1 money, 1 correctness, "
            "1 interoperability, 1 courtesy) in the 4 of 42 cases that were judged.");
  EXPECT_EQ(verdict_sentence(all_pass()),
            "http://127.0.0.1:9000 passes the 2 of 42 cases that were judged in the profile ietf.");
  auto all = all_pass();
  all.cases_known = 3;
  EXPECT_EQ(verdict_sentence(all),
            "http://127.0.0.1:9000 passes the 2 of 3 cases that could be judged in the profile "
            "ietf.");
  all.cases.pop_back();
  all.cases_known = 2;
  EXPECT_EQ(verdict_sentence(all), "http://127.0.0.1:9000 passes all 2 cases in the profile ietf.");
  all.ended_early = "it was interrupted";
  EXPECT_TRUE(verdict_sentence(all).ends_with("The run ended early: it was interrupted."));
  EXPECT_TRUE(terminal_report(all, false, 80).contains("– incomplete: "));
  EXPECT_TRUE(badge_svg(all).contains("<title>idempotency: incomplete</title>"));
  EXPECT_EQ(text_at(parsed(json_report(all)), "verdict"), "fail") << "it is no pass";
  EXPECT_EQ(text_at(parsed(json_report(all)), "ended_early"), "it was interrupted");
  EXPECT_EQ(verdict_sentence(report_of({})),
            "No case could be judged against http://127.0.0.1:9000.");
}

TEST(CheckReport, no_form_lets_hostile_bytes_through) {
  for (const auto& [form, text] : all_forms(hostile_report())) {
    EXPECT_TRUE(is_utf8(text)) << form;
    EXPECT_EQ(std::ranges::count_if(text, is_control), 0) << form;
    EXPECT_FALSE(text.contains("\xC2\x9B")) << form << ": CSI in one character";
    EXPECT_FALSE(text.contains("\xE2\x80\xAE")) << form << ": right to left";
    EXPECT_FALSE(text.contains("\xEF\xBF\xBE")) << form << ": not in XML";
    if (form == "html" || form == "junit" || form == "badge") {
      EXPECT_FALSE(text.contains("<script")) << form;
      EXPECT_FALSE(text.contains("<!--")) << form;
      EXPECT_FALSE(text.contains("]]>")) << form;
    }
  }
}

TEST(CheckReport, an_empty_report_has_all_forms_and_claims_nothing) {
  const Report empty;
  for (const auto& [form, text] : all_forms(empty)) EXPECT_FALSE(text.empty()) << form;
  EXPECT_TRUE(
      terminal_report(empty, false, 80).starts_with("– not tested: No case could be judged"));
  EXPECT_TRUE(badge_svg(empty).contains("<title>idempotency: not tested</title>"));
  EXPECT_FALSE(html_report(empty).contains("✓"));
  parsed(json_report(empty));
  EXPECT_EQ(size_at(parsed(sarif_report(empty)), "runs"), 1U);
  EXPECT_TRUE(junit_report(empty).contains("tests=\"0\" failures=\"0\""));
}

TEST(CheckJson, has_its_members) {
  const auto json = parsed(json_report(all_severities_fail()));
  EXPECT_EQ(text_at(json, "target"), "http://127.0.0.1:9000");
  EXPECT_EQ(text_at(json, "profile"), "ietf");
  EXPECT_EQ(text_at(json, "verdict"), "fail");
  EXPECT_EQ(std::get<std::uint64_t>(at(json, "seed").is), 18'446'744'073'709'551'615U);
  EXPECT_EQ(text_at(json, "version"), "1.2.3");
  EXPECT_EQ(std::get<std::int64_t>(at(json, "took_ms").is), 65'432);
  EXPECT_EQ(std::get<std::int64_t>(at(json, "requests").is), 321);
  EXPECT_EQ(text_at(json, "key_mark"), "mark-");
  ASSERT_EQ(size_at(json, "cases"), 5U);
  EXPECT_EQ(text_at(json, "cases/1/id"), "race.two");
  EXPECT_EQ(text_at(json, "cases/1/severity"), "money");
  EXPECT_EQ(text_at(json, "cases/1/result"), "fail");
  EXPECT_EQ(text_at(json, "cases/1/detail"), "Both were executed.");
  EXPECT_EQ(std::get<std::int64_t>(at(json, "cases/1/times").is), 3);
  EXPECT_EQ(std::get<std::int64_t>(at(json, "cases/1/failures").is), 2);
  ASSERT_EQ(size_at(json, "cases/1/calls"), 2U);
  EXPECT_EQ(text_at(json, "cases/1/calls/0/what"), "both, 1 of 2");
  EXPECT_EQ(text_at(json, "cases/1/calls/0/request"), order);
  EXPECT_TRUE(text_at(json, "cases/1/calls/1/answer").ends_with("\r\n\r\n{\"id\":2}"));
  EXPECT_EQ(text_at(json, "cases/1/calls/0/failure"), "");
  EXPECT_EQ(std::get<std::int64_t>(at(json, "cases/1/calls/0/took_ms").is), 41);
  EXPECT_EQ(text_at(json, "cases/1/reason"), texts[1].reason);
  EXPECT_EQ(text_at(json, "cases/1/money"), "The customer pays twice.");
  EXPECT_EQ(text_at(json, "cases/1/mend"), "Reserve the key with a unique index.");
  EXPECT_EQ(at(json, "cases/4").find("calls"), nullptr) << "only of failures";
  EXPECT_EQ(text_at(parsed(json_report(all_pass())), "verdict"), "pass");
}

TEST(CheckJson, shows_bytes_that_are_no_text) {
  auto report = report_of({result_of(1, Outcome::fail)});
  report.cases[0].calls = {call_of("first", "a\xFF\r\n\x1b\x00 b"s)};
  EXPECT_EQ(text_at(parsed(json_report(report)), "cases/0/calls/0/answer"),
            "a\\xff\r\n\\x1b\\x00 b");
}

TEST(CheckJunit, counts_and_names_the_cases) {
  const std::string xml = junit_report(all_severities_fail());
  EXPECT_TRUE(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "));
  EXPECT_EQ(
      occurrences(xml, "tests=\"5\" failures=\"4\" errors=\"0\" skipped=\"1\" time=\"65.432\""),
      2U);
  EXPECT_TRUE(
      xml.contains("<testcase classname=\"idem.check.money\" name=\"race.two\" "
                   "time=\"0.044\">"));
  EXPECT_TRUE(xml.contains("<failure type=\"money\" message=\"Both were executed.\">"));
  EXPECT_TRUE(xml.contains("<skipped message=\"No restart command is given.\"/>"));
  EXPECT_TRUE(xml.contains("POST /payments HTTP/1.1\nHost: api\n"));
  EXPECT_EQ(occurrences(xml, "<failure "), 4U);
}

TEST(CheckSarif, has_what_the_format_requires) {
  const auto sarif = parsed(sarif_report(all_severities_fail()));
  EXPECT_EQ(text_at(sarif, "version"), "2.1.0");
  EXPECT_EQ(text_at(sarif, "runs/0/tool/driver/name"), "idem check");
  EXPECT_EQ(text_at(sarif, "runs/0/tool/driver/version"), "1.2.3");
  ASSERT_EQ(size_at(sarif, "runs/0/tool/driver/rules"), 5U) << "of all cases";
  const auto& rule = at(sarif, "runs/0/tool/driver/rules/1");
  EXPECT_EQ(text_at(rule, "id"), "race.two");
  EXPECT_EQ(text_at(rule, "shortDescription/text"), "2 concurrent requests execute once");
  EXPECT_EQ(text_at(rule, "fullDescription/text"), texts[1].reason);
  EXPECT_TRUE(text_at(rule, "help/text").contains("The customer pays twice."));
  EXPECT_EQ(rule.find("helpUri"), nullptr);
  const std::array<std::string, 5> levels{"note", "error", "warning", "error", "error"};
  for (std::size_t i = 0; i < levels.size(); ++i) {
    EXPECT_EQ(text_at(sarif, "runs/0/tool/driver/rules/" + std::to_string(i) +
                                 "/defaultConfiguration/level"),
              levels[i]);
  }
  ASSERT_EQ(size_at(sarif, "runs/0/results"), 4U) << "of failures alone";
  const auto& result = at(sarif, "runs/0/results/1");
  EXPECT_EQ(text_at(result, "ruleId"), "race.two");
  EXPECT_EQ(std::get<std::int64_t>(at(result, "ruleIndex").is), 1);
  EXPECT_EQ(text_at(result, "level"), "error");
  EXPECT_TRUE(text_at(result, "message/text").contains("Both were executed."));
  EXPECT_EQ(text_at(result, "locations/0/physicalLocation/artifactLocation/uri"),
            "idem-check.yaml");
  EXPECT_EQ(text_at(result, "properties/url"), "http://127.0.0.1:9000");
  EXPECT_EQ(text_at(sarif, "runs/0/properties/seed"), "18446744073709551615");
}

TEST(CheckSarif, a_finding_is_in_a_file_and_never_at_a_url) {
  auto report = report_of({result_of(1, Outcome::fail)});
  const auto uri = [&](std::string file) {
    report.config = std::move(file);
    return text_at(parsed(sarif_report(report)),
                   "runs/0/results/0/locations/0/physicalLocation/artifactLocation/uri");
  };
  EXPECT_EQ(uri("./ci/check me.yaml"), "ci/check%20me.yaml");
  EXPECT_EQ(uri("/etc/check.yaml"), "etc/check.yaml");
  EXPECT_EQ(uri("http://x"), "./http://x");
  EXPECT_EQ(uri(""), "idem-check.yaml");
}

TEST(CheckSarif, a_message_has_no_placeholder_and_no_link_of_the_api) {
  const auto sarif = parsed(sarif_report(hostile_report()));
  const std::string message = text_at(sarif, "runs/0/results/0/message/text");
  EXPECT_TRUE(message.contains("{{0}}"));
  EXPECT_FALSE(message.contains("](")) << message;
  const auto uri =
      text_at(sarif, "runs/0/results/0/locations/0/physicalLocation/artifactLocation/uri");
  EXPECT_FALSE(uri.contains('<'));
  EXPECT_FALSE(uri.contains(' '));
}

TEST(CheckHtml, is_one_page_that_loads_and_runs_nothing) {
  for (const auto& report : {all_severities_fail(), all_pass(), hostile_report(), report_of({})}) {
    const std::string html = html_report(report);
    EXPECT_TRUE(html.starts_with("<!DOCTYPE html>\n"));
    for (const auto* part : {"<script", "<link", "<img", "<iframe", "@import", "url(",
                             " src=", " onclick", "javascript:"}) {
      EXPECT_FALSE(html.contains(part)) << part;
    }
    EXPECT_EQ(occurrences(html, "<style>"), 1U);
    EXPECT_TRUE(html.contains("default-src 'none'"));
  }
}

TEST(CheckHtml, begins_with_the_verdict_and_goes_on_with_the_costliest) {
  const std::string html = html_report(all_severities_fail());
  const std::string parts = R"(<h1>
4 findings (1 money, 1 correctness, 1 interoperability, 1 courtesy)
<h2>Findings</h2>
id="finding-race-two"
Both were executed. Failed in 2 of 3 attempts.
The customer pays twice.
Reserve the key with a unique index.
Draft 07, section 2.6
<details>
{&quot;amount&quot;:101}
{&quot;id&quot;:2}
id="finding-replay-identical"
id="finding-key-list"
id="finding-courtesy-retry-after"
<h2>All cases</h2>
<a href="#finding-courtesy-retry-after">
✗ fail
– skip
<h2>Repeat this run</h2>
18446744073709551615
1.2.3
mark-
2026-11-27T08:00:00Z)";
  std::size_t before = 0;
  for (const auto part : std::views::split(parts, '\n')) {
    const std::size_t found = html.find(std::string_view(part), before);
    ASSERT_NE(found, std::string::npos) << std::string_view(part);
    before = found;
  }
}

TEST(CheckHtml, shows_a_long_answer_and_many_calls_only_in_part) {
  auto report = report_of({result_of(1, Outcome::fail)});
  for (std::size_t i = 0; i < page_calls_max + 2; ++i) {
    report.cases[0].calls.push_back(call_of("one", "HTTP/1.1 200 OK\r\n\r\n"));
  }
  report.cases[0].calls[0].answer += std::string(page_message_bytes_max, 'a');
  const std::string html = html_report(report);
  EXPECT_EQ(occurrences(html, "<details>"), page_calls_max);
  EXPECT_TRUE(html.contains("The JSON report has 2 more requests."));
  EXPECT_TRUE(html.contains("[19 more bytes]"));
}

TEST(CheckBadge, says_it_in_three_words) {
  EXPECT_TRUE(badge_svg(all_pass()).contains("<title>idempotency: ietf: 2/42 pass</title>"));
  EXPECT_TRUE(badge_svg(all_severities_fail()).contains("<title>idempotency: 4 findings</title>"));
  EXPECT_TRUE(badge_svg(report_of({result_of(1, Outcome::fail)})).contains(": 1 finding<"));
  EXPECT_LT(badge_svg(hostile_report()).size(), 2'000U);
}

TEST(CheckTerminal, shows_findings_counts_skips_and_the_verdict) {
  auto report = all_severities_fail();
  report.cases.erase(report.cases.begin() + 2, report.cases.begin() + 4);
  EXPECT_EQ(terminal_report(report, false, 60),
            R"(✗ money Violated: 2 concurrent requests execute once (race.two)
  Observed  Both were executed. Failed in 2 of 3 attempts.

    both, 1 of 2 (at 3 ms, took 41 ms)
      > POST /payments HTTP/1.1
      > Idempotency-Key: "mark-1"
      > {"amount":101}
      < HTTP/1.1 201 Created
      < Location: /1
      < {"id":1}
    both, 2 of 2 (at 3 ms, took 41 ms)
      > the same request
      < HTTP/1.1 201 Created
      < Location: /2
      < {"id":2}

  Impact    The customer pays twice.
  Fix       Reserve the key with a unique index.
  Source    Draft 07, section 2.6

✗ courtesy Violated: A refusal in flight says when to retry (courtesy.retry_after)
  Observed  The 409 has no Retry-After. Failed in 2 of 3
            attempts.

  Impact    None.
  Fix       Add Retry-After.
  Source    RFC 9110, section 10.2.3

money              0 pass   1 fail   1 skip
courtesy           0 pass   1 fail   0 skip

Skipped:
  - No restart command is given: restart.between

✗ fail: http://127.0.0.1:9000 fails the profile ietf: 2
        findings (1 money, 1 courtesy) in the 2 of 42 cases
        that were judged.
Profile ietf, seed 18446744073709551615, key mark mark-, 321
requests, 1 min 5 s.
)");
}

TEST(CheckTerminal, groups_skips_by_their_reason) {
  const auto report = report_of({result_of(2, Outcome::skip, "No counter."),
                                 result_of(3, Outcome::skip, "No restart."),
                                 result_of(1, Outcome::skip, "No counter.")});
  const std::string text = terminal_report(report, false, 200);
  EXPECT_TRUE(text.contains(
      "Skipped:\n  - No counter: key.list, race.two\n  - No restart: replay.identical\n"))
      << text;
}

TEST(CheckTerminal, has_colours_only_where_asked_and_none_of_the_api) {
  auto report = hostile_report();
  const std::string plain = terminal_report(report, false, 80);
  const std::string coloured = terminal_report(report, true, 80);
  EXPECT_FALSE(plain.contains('\x1b'));
  EXPECT_TRUE(coloured.contains("\x1b[31m"));
  std::string stripped = coloured;
  for (const auto* own : {"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"}) {
    for (auto at = stripped.find(own); at != std::string::npos; at = stripped.find(own, at)) {
      stripped.erase(at, std::string_view(own).size());
    }
  }
  EXPECT_EQ(stripped, plain);
}

TEST(CheckTerminal, cuts_lines_of_messages_at_the_width) {
  auto report = report_of({result_of(1, Outcome::fail)});
  report.cases[0].calls = {
      call_of("first", "HTTP/1.1 200 OK\r\nDate: now\r\n\r\n" + std::string(500, 'b'))};
  const std::string text = terminal_report(report, false, 50);
  EXPECT_TRUE(text.contains("\n      < " + std::string(41, 'b') + "…\n")) << text;
  EXPECT_FALSE(text.contains("Date"));
  EXPECT_EQ(terminal_report(report, false, -1), terminal_report(report, false, 40));
}

TEST(CheckTerminal, shows_fields_that_the_finding_names) {
  auto report = report_of({result_of(1, Outcome::fail, "The replay has another set-cookie.")});
  report.cases[0].calls = {call_of("first", "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n\r\n")};
  EXPECT_TRUE(terminal_report(report, false, 80).contains("      < Set-Cookie: a=b\n"));
}

TEST(CheckTerminal, shows_the_first_two_calls_and_the_last_one) {
  auto report = report_of({result_of(1, Outcome::fail)});
  for (int i = 0; i < 6; ++i) {
    report.cases[0].calls.push_back(
        call_of("call " + std::to_string(i), "HTTP/1.1 200 OK\r\n\r\n"));
  }
  report.cases[0].calls.back().answer.clear();
  report.cases[0].calls.back().failure = "timeout";
  const std::string text = terminal_report(report, false, 80);
  EXPECT_TRUE(text.contains("call 1") && text.contains("    and 3 more requests\n    call 5"));
  EXPECT_FALSE(text.contains("call 2"));
  EXPECT_TRUE(text.contains("      > the same request\n      < no answer: timeout\n"));
}

}  // namespace
}  // namespace idem::check
