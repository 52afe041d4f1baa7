#include "check/report/escape.hpp"
#include "check/report/reports.hpp"
#include "check/report/summary.hpp"
#include "json/writer.hpp"

namespace idem::check {
namespace {

std::string json_message(std::string_view bytes) {
  return printable(excerpt_of(bytes, json_message_bytes_max), LineEnds::kept);
}

void write_call(json::Writer& json, const Call& call) {
  json.begin_object();
  json.member("what", printable(call.what));
  json.member("request", json_message(call.request));
  json.member("answer", json_message(call.answer));
  json.member("failure", printable(call.failure));
  json.member("began_ms", call.began.count());
  json.member("took_ms", call.took.count());
  json.end_object();
}

void write_case(json::Writer& json, const CaseResult& result) {
  const CaseText& text = text_of(result);
  json.begin_object();
  json.member("id", text.id);
  json.member("severity", name_of(text.severity));
  json.member("title", text.title);
  json.member("source", text.source);
  json.member("result", name_of(result.outcome));
  json.member("detail", printable(result.detail));
  json.member("times", result.times);
  json.member("failures", result.failures);
  if (result.outcome == Outcome::fail || is_unconfirmed(result)) {
    json.member("reason", text.reason);
    json.member("money", text.money);
    json.member("mend", text.mend);
    json.name("calls");
    json.begin_array();
    for (const auto& call : result.calls) write_call(json, call);
    json.end_array();
  }
  json.end_object();
}

}  // namespace

std::string json_report(const Report& report) {
  json::Writer json;
  json.begin_object();
  json.member("target", printable(report.target));
  json.member("profile", printable(report.profile));
  json.member("verdict", report.passes() ? "pass" : "fail");
  json.member("seed", report.seed);
  json.member("version", printable(report.version));
  json.member("started_at", printable(report.started_at));
  json.member("took_ms", report.took.count());
  json.member("requests", report.requests);
  json.member("key_mark", printable(report.key_mark));
  json.member("cases_known", cases_known(report));
  if (!report.ended_early.empty()) json.member("ended_early", printable(report.ended_early));
  json.name("cases");
  json.begin_array();
  for (const auto& result : report.cases) write_case(json, result);
  json.end_array();
  json.end_object();
  return json.take() + "\n";
}

}  // namespace idem::check
