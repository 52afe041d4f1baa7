#include "check/report/call_lines.hpp"
#include "check/report/escape.hpp"
#include "check/report/html_style.hpp"
#include "check/report/reports.hpp"
#include "check/report/summary.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace idem::check {
namespace {

std::string_view meaning_of(Severity severity) {
  switch (severity) {
    case Severity::money:
      return "The API executes an operation twice or never, or gives a caller the answer to "
             "another "
             "request.";
    case Severity::correctness:
      return "A client cannot rely on the answer.";
    case Severity::interoperability:
      return "The API refuses clients that follow the profile.";
    case Severity::courtesy:
      return "The API is safe, and costs clients or operators time.";
  }
  return "";
}

/// A sign and a word in a colour.
std::string outcome_mark(Outcome outcome) {
  const auto word = name_of(outcome);
  switch (outcome) {
    case Outcome::pass:
      return fmt::format("<span class=\"word pass\">✓ {}</span>", word);
    case Outcome::fail:
      return fmt::format("<span class=\"word fail\">✗ {}</span>", word);
    case Outcome::skip:
      return fmt::format("<span class=\"word skip\">– {}</span>", word);
  }
  return "";
}

std::string conclusion_mark(Conclusion conclusion) {
  switch (conclusion) {
    case Conclusion::pass:
      return "<span class=\"word pass\">✓ pass</span>";
    case Conclusion::fail:
      return "<span class=\"word fail\">✗ fail</span>";
    case Conclusion::incomplete:
      return "<span class=\"word untested\">– incomplete</span>";
    case Conclusion::untested:
      return "<span class=\"word untested\">– not tested</span>";
  }
  return "";
}

/// For an id and a link to it: letters, digits, and "-" for all else.
std::string anchor_of(const CaseText& text) {
  std::string anchor = "finding-";
  for (const char c : text.id) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    anchor += is_letter || (c >= '0' && c <= '9') ? c : '-';
  }
  return anchor;
}

std::string head(const Report& report) {
  const auto word = word_of(conclusion_of(report));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\""
      " content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>{}: idempotency of {}</title>\n<style>{}</style>\n</head>\n",
      word, markup(report.target), html_style);
}

std::string severity_item(const Report& report, Severity severity) {
  const Counts counts = counts_of(report, severity);
  return fmt::format(
      "<li class=\"{0}{1}\"><b>{0}</b>{2}, {3} passed, {4} skipped<small>{5}</small></li>\n",
      name_of(severity), counts.fail > 0 ? " some" : "", counted(counts.fail, "finding"),
      counts.pass, counts.skip, meaning_of(severity));
}

std::string verdict(const Report& report) {
  std::string out = fmt::format(
      "<header>\n<p class=\"over\">Idempotency check</p>\n<h1>{} {}</h1>\n"
      "<ul class=\"severities\">\n",
      conclusion_mark(conclusion_of(report)), markup(verdict_sentence(report)));
  for (const Severity severity : all_severities) out += severity_item(report, severity);
  return out + "</ul>\n</header>\n";
}

std::string message_markup(std::string_view title, std::string_view bytes) {
  return fmt::format("<h4>{}</h4>\n<pre>{}</pre>\n", title,
                     marked_markup(excerpt_of(bytes, page_message_bytes_max)));
}

/// "POST /payments → 201 Created"
std::string call_in_short(const Call& call) {
  constexpr std::string_view version = "HTTP/1.1";
  std::string request = first_line_of(call.request);
  if (request.ends_with(version)) request.resize(request.size() - version.size());
  std::string answer = call.answer.empty() ? "no answer" : first_line_of(call.answer);
  if (answer.starts_with(version)) answer.erase(0, version.size());
  return request + " → " + answer;
}

std::string call(const Call& call) {
  std::string out = fmt::format(
      "<details>\n<summary>{} <code>{}</code></summary>\n"
      "<p class=\"soft\">Sent {} after the start of the case; took {}.</p>\n",
      markup(call.what), markup(call_in_short(call)), duration_text(call.began),
      duration_text(call.took));
  out += message_markup("Request", call.request);
  if (!call.answer.empty()) out += message_markup("Answer", call.answer);
  if (!call.failure.empty()) {
    out += fmt::format("<p>{}: {}</p>\n", call.answer.empty() ? "No answer" : "Incomplete answer",
                       markup(call.failure));
  }
  return out + "</details>\n";
}

std::string term(std::string_view name, std::string_view text) {
  if (text.empty()) return "";
  return fmt::format("<dt>{}</dt>\n<dd>{}</dd>\n", name, markup(text));
}

std::string finding(const CaseResult& result) {
  const CaseText& text = text_of(result);
  std::string out = fmt::format(
      "<article class=\"finding {0}\" id=\"{1}\">\n<h3>{4}: {2}</h3>\n"
      "<p class=\"soft\"><span class=\"severity\">{0}</span> · <code>{3}</code></p>\n<dl "
      "class=\"facts\">\n",
      name_of(text.severity), anchor_of(text), markup(text.title), markup(text.id),
      is_unconfirmed(result) ? "? Not confirmed" : "✗ Violated");
  out += term("Observed", result.detail + " " + attempts_sentence(result)) +
         term("Impact", text.money) + term("Reason", text.reason) + term("Fix", text.mend) +
         term("Source", text.source) + "</dl>\n";
  const std::size_t shown = std::min(result.calls.size(), page_calls_max);
  for (std::size_t i = 0; i < shown; ++i) out += call(result.calls[i]);
  if (shown < result.calls.size()) {
    out += fmt::format("<p class=\"soft\">The JSON report has {}.</p>\n",
                       counted(result.calls.size() - shown, "more request"));
  }
  return out + "</article>\n";
}

std::string findings(const Report& report) {
  const auto all = findings_of(report);
  std::string out = "<section>\n<h2>Findings</h2>\n";
  out += all.empty() ? "<p>None.</p>\n" : "<p class=\"soft\">The costliest first.</p>\n";
  for (const CaseResult* one : all) out += finding(*one);
  out += "</section>\n";
  const auto unconfirmed = unconfirmed_of(report);
  if (unconfirmed.empty()) return out;
  out += "<section>\n<h2>Not confirmed</h2>\n";
  for (const CaseResult* one : unconfirmed) out += finding(*one);
  return out + "</section>\n";
}

std::string row(const CaseResult& result) {
  const CaseText& text = text_of(result);
  std::string title = markup(text.title);
  if (result.outcome == Outcome::fail || is_unconfirmed(result)) {
    title = fmt::format("<a href=\"#{}\">{}</a>", anchor_of(text), title);
  }
  std::string detail;
  if (!result.detail.empty()) detail = fmt::format("<small>{}</small>", markup(result.detail));
  return fmt::format(
      "<tr><td>{}</td><td>{} <small><code>{}</code></small>{}</td><td>{}</td><td>{}</td></tr>\n",
      outcome_mark(result.outcome), title, markup(text.id), detail, name_of(text.severity),
      result.times == 0 ? ""
                        : counted(static_cast<std::size_t>(std::max(result.times, 0)), "attempt"));
}

std::string table(const Report& report) {
  std::string out = "<section>\n<h2>All cases</h2>\n";
  if (report.cases.empty()) return out + "<p>None.</p>\n</section>\n";
  out +=
      "<table>\n<thead><tr><th>Result</th><th>Case</th><th>Severity</th><th>Attempts</th></tr></"
      "thead>\n"
      "<tbody>\n";
  for (const auto& result : report.cases) out += row(result);
  return out + "</tbody>\n</table>\n</section>\n";
}

std::string repetition(const Report& report) {
  return "<section>\n<h2>Repeat this run</h2>\n"
         "<p>The same program with the same profile and seed runs the same cases in the same order."
         " All keys and <code>{{unique}}</code> texts of this run begin with the key mark: find the"
         " created test data by it, and delete it.</p>\n<dl class=\"facts\">\n" +
         term("Target", report.target) + term("Profile", report.profile) +
         term("Seed", std::to_string(report.seed)) +
         term("Version", "idem check " + report.version) + term("Key mark", report.key_mark) +
         term("Started", report.started_at) + term("Took", duration_text(report.took)) +
         term("Requests", std::to_string(report.requests)) +
         "</dl>\n<p class=\"soft\">Credentials are masked. Bytes that are not text are shown as"
         " <code>\\x1b</code>, and invisible characters as <code>\\u{202e}</code>.</p>\n"
         "</section>\n";
}

}  // namespace

std::string html_report(const Report& report) {
  return head(report) + "<body>\n<main>\n" + verdict(report) + findings(report) + table(report) +
         repetition(report) + "</main>\n</body>\n</html>\n";
}

}  // namespace idem::check
