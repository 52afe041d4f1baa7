#include "check/report/escape.hpp"
#include "check/report/reports.hpp"
#include "check/report/summary.hpp"
#include "json/writer.hpp"

#include <fmt/format.h>

namespace idem::check {
namespace {

std::string_view level_of(Severity severity) {
  switch (severity) {
    case Severity::money:
    case Severity::correctness:
      return "error";
    case Severity::interoperability:
      return "warning";
    case Severity::courtesy:
      return "note";
  }
  return "none";
}

/// A message string: braces are doubled (SARIF 2.1.0, 3.11.5), and "[text](URI)" is no link
/// (3.11.6). Never empty (3.11.8).
std::string sarif_message(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '(' && out.ends_with(']')) out += ' ';
    if (c == '{' || c == '}') out += c;
    out += c;
  }
  return out.empty() ? "-" : out;
}

void write_text(json::Writer& json, std::string_view name, std::string_view text) {
  json.name(name);
  json.begin_object();
  json.member("text", sarif_message(text));
  json.end_object();
}

void write_rule(json::Writer& json, const CaseText& text) {
  json.begin_object();
  json.member("id", text.id);
  write_text(json, "shortDescription", text.title);
  write_text(json, "fullDescription", text.reason);
  write_text(json, "help",
             fmt::format("Impact: {} Fix: {} Source: {}.", text.money, text.mend, text.source));
  json.name("defaultConfiguration");
  json.begin_object();
  json.member("level", level_of(text.severity));
  json.end_object();
  json.name("properties");
  json.begin_object();
  json.member("severity", name_of(text.severity));
  json.member("source", text.source);
  json.name("tags");
  json.begin_array();
  json.text("idempotency");
  json.text(name_of(text.severity));
  json.end_array();
  json.end_object();
  json.end_object();
}

/// A path as a relative URI, whose first segment is never read as a scheme.
std::string uri_of_file(std::string path) {
  while (path.starts_with("./") || path.starts_with('/')) path.erase(0, path.find('/') + 1);
  if (path.empty()) return "idem-check.yaml";
  const auto colon = path.find(':');
  return (colon != path.npos && colon < path.find('/') ? "./" : "") + uri_text(path);
}

void write_location(json::Writer& json, const Report& report) {
  json.begin_object();
  json.name("physicalLocation");
  json.begin_object();
  json.name("artifactLocation");
  json.begin_object();
  json.member("uri", uri_of_file(report.config));
  json.end_object();
  // GitHub shows no location without a line.
  json.name("region");
  json.begin_object();
  json.member("startLine", 1);
  json.end_object();
  json.end_object();
  json.end_object();
}

void write_result(json::Writer& json, const Report& report, std::size_t rule) {
  const CaseResult& result = report.cases[rule];
  const CaseText& text = text_of(result);
  json.begin_object();
  json.member("ruleId", text.id);
  json.member("ruleIndex", rule);
  // A kind other than "fail" has no level (3.27.9, 3.27.10).
  if (is_unconfirmed(result)) json.member("kind", "review");
  json.member("level", is_unconfirmed(result) ? "none" : level_of(text.severity));
  write_text(json, "message",
             fmt::format("{}: {}. {} {}", is_unconfirmed(result) ? "Not confirmed" : "Violated",
                         text.title, result.detail, attempts_sentence(result)));
  json.name("locations");
  json.begin_array();
  write_location(json, report);
  json.end_array();
  // The same fault of the same API in two runs is the same result, whatever the seed.
  json.name("partialFingerprints");
  json.begin_object();
  json.member("idemCheckCase/v1", std::string(text.id) + " " + printable(report.target));
  json.end_object();
  json.name("properties");
  json.begin_object();
  json.member("url", printable(report.target));
  json.end_object();
  json.end_object();
}

void write_driver(json::Writer& json, const Report& report) {
  json.begin_object();
  json.member("name", "idem check");
  if (!report.version.empty()) json.member("version", printable(report.version));
  json.name("rules");
  json.begin_array();
  for (const auto& result : report.cases) write_rule(json, text_of(result));
  json.end_array();
  json.end_object();
}

/// How the run can be repeated.
void write_properties(json::Writer& json, const Report& report) {
  json.begin_object();
  json.member("url", printable(report.target));
  json.member("profile", printable(report.profile));
  json.member("seed", std::to_string(report.seed));
  json.member("started_at", printable(report.started_at));
  json.member("took_ms", report.took.count());
  json.member("requests", report.requests);
  json.member("key_mark", printable(report.key_mark));
  json.end_object();
}

}  // namespace

std::string sarif_report(const Report& report) {
  json::Writer json;
  json.begin_object();
  json.member("version", "2.1.0");
  json.member("$schema",
              "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"
              "sarif-schema-2.1.0.json");
  json.name("runs");
  json.begin_array();
  json.begin_object();
  json.name("tool");
  json.begin_object();
  json.name("driver");
  write_driver(json, report);
  json.end_object();
  json.name("results");
  json.begin_array();
  for (std::size_t i = 0; i < report.cases.size(); ++i) {
    const CaseResult& one = report.cases[i];
    if (one.outcome == Outcome::fail || is_unconfirmed(one)) write_result(json, report, i);
  }
  json.end_array();
  json.name("properties");
  write_properties(json, report);
  json.end_object();
  json.end_array();
  json.end_object();
  return json.take() + "\n";
}

}  // namespace idem::check
