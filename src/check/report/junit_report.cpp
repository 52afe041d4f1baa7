#include "check/report/escape.hpp"
#include "check/report/reports.hpp"
#include "check/report/summary.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace idem::check {
namespace {

// CI servers show the text of a failure on one page with all others.
constexpr std::size_t message_bytes_max = 4UL * 1024;
constexpr std::size_t calls_max = 6;

/// "1.250"
std::string seconds(std::chrono::milliseconds time) {
  return fmt::format("{}.{:03}", time.count() / 1'000, time.count() % 1'000);
}

/// Until the end of its last call: the report knows no more.
std::chrono::milliseconds time_of(const CaseResult& result) {
  std::chrono::milliseconds end{};
  for (const auto& call : result.calls) end = std::max(end, call.began + call.took);
  return end;
}

std::string message_lines(std::string_view title, std::string_view bytes) {
  return fmt::format("\n{}:\n{}\n", title,
                     markup(excerpt_of(bytes, message_bytes_max), LineEnds::plain));
}

std::string failure_text(const CaseResult& result) {
  const CaseText& text = text_of(result);
  std::string out =
      fmt::format("{}: {}\nObserved: {} {}\nImpact: {}\nFix: {}\nSource: {}\n",
                  is_unconfirmed(result) ? "Not confirmed" : "Violated", markup(text.title),
                  markup(result.detail), attempts_sentence(result), markup(text.money),
                  markup(text.mend), markup(text.source));
  const std::size_t shown = std::min(result.calls.size(), calls_max);
  for (std::size_t i = 0; i < shown; ++i) {
    const Call& call = result.calls[i];
    out += message_lines(markup(call.what) + ", request", call.request);
    if (!call.answer.empty()) out += message_lines("Answer", call.answer);
    if (!call.failure.empty()) out += "No complete answer: " + markup(call.failure) + "\n";
  }
  if (shown < result.calls.size()) {
    out += "\nand " + counted(result.calls.size() - shown, "more request") + "\n";
  }
  return out;
}

std::string test_case(const CaseResult& result) {
  const CaseText& text = text_of(result);
  const std::string head =
      fmt::format("    <testcase classname=\"idem.check.{}\" name=\"{}\" time=\"{}\"",
                  name_of(text.severity), markup(text.id), seconds(time_of(result)));
  std::string output;
  if (is_unconfirmed(result)) {
    output = "      <system-out>" + failure_text(result) + "</system-out>\n";
  }
  switch (result.outcome) {
    case Outcome::pass:
      break;
    case Outcome::fail:
      return fmt::format(
          "{}>\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n"
          "    </testcase>\n",
          head, name_of(text.severity), markup(result.detail), failure_text(result));
    case Outcome::skip:
      return fmt::format("{}>\n      <skipped message=\"{}\"/>\n{}    </testcase>\n", head,
                         markup(result.detail), output);
  }
  return output.empty() ? head + "/>\n" : head + ">\n" + output + "    </testcase>\n";
}

std::string property(std::string_view name, const std::string& value) {
  return fmt::format("      <property name=\"{}\" value=\"{}\"/>\n", name, markup(value));
}

}  // namespace

std::string junit_report(const Report& report) {
  const Counts counts = counts_of(report);
  const std::string numbers =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{}\"",
                  counts.all(), counts.fail, counts.skip, seconds(report.took));
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"idem check\" {}>\n"
      "  <testsuite name=\"{}\" timestamp=\"{}\" {}>\n    <properties>\n",
      numbers, markup(report.target), markup(report.started_at), numbers);
  out += property("profile", report.profile) + property("seed", std::to_string(report.seed)) +
         property("version", report.version) + property("key_mark", report.key_mark) +
         "    </properties>\n";
  for (const auto& result : report.cases) out += test_case(result);
  return out + "  </testsuite>\n</testsuites>\n";
}

}  // namespace idem::check
