#include "cli/commands/check_report.hpp"

#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"
#include "cli/settings/config_check.hpp"
#include "cli/settings/environment.hpp"
#include "cli/settings/opening.hpp"

#include <cstdio>
#include <string_view>

namespace idem::cli {
namespace {

/// Of a warning that has its place in front of it.
constexpr std::string_view warning_mark = "warning: ";

void write_lines(json::Writer& out, std::string_view name, const std::vector<std::string>& lines) {
  static constexpr std::string_view between = ": ";
  out.name(name);
  out.begin_array();
  for (const auto& line : lines) {
    const auto at = line.find(between);
    std::string_view message = line;
    out.begin_object();
    if (at == line.npos) {
      out.name("place");
      out.null();
    } else {
      out.member("place", line.substr(0, at));
      message.remove_prefix(at + between.size());
    }
    if (message.starts_with(warning_mark)) message.remove_prefix(warning_mark.size());
    out.member("message", message);
    out.end_object();
  }
  out.end_array();
}

}  // namespace

CheckReport report_on(const SettingsSource& source, Purpose purpose, bool asks_server) {
  CheckReport report{.purpose = purpose};
  const auto settings = source.read_for(purpose);
  if (!settings) {
    report.complaints = settings.error();
    report.warnings = SettingsSource::variables_without_effect();
    return report;
  }
  Complaints wrong;
  Complaints warned;
  check_named_files(*settings, wrong);
  if (wrong.empty()) {
    auto judged = judge_store(settings->options, asks_server);
    const auto& place = settings->given.store.place;
    if (judged.why_refused) wrong.add(place, std::move(*judged.why_refused));
    for (auto& doubt : judged.doubts) warned.add(place, std::move(doubt));
  }
  report.complaints = wrong.lines();
  report.warnings = settings->warnings;
  warn_of_laxer_routes(*settings, warned);
  warn_of_method_overrides(*settings, warned);
  for (auto& line : warned.lines()) report.warnings.push_back(std::move(line));
  return report;
}

void write_report(json::Writer& out, const CheckReport& report) {
  out.begin_object();
  out.flag("ok", report.complaints.empty());
  out.member("role", report.purpose == Purpose::worker ? "worker" : "gateway");
  write_lines(out, "complaints", report.complaints);
  write_lines(out, "warnings", report.warnings);
  out.end_object();
}

int print_report(const SettingsSource& source, Purpose purpose, bool asks_server) {
  const CheckReport report = report_on(source, purpose, asks_server);
  // First what matters: a handover keeps the beginning only.
  for (const auto& line : report.complaints) std::fprintf(stderr, "%s\n", line.c_str());
  for (const auto& line : report.warnings) {
    const bool is_marked = line.find(warning_mark) != line.npos;
    std::fprintf(stderr, "%s\n", (is_marked ? line : as_warning(line)).c_str());
  }
  if (!report.complaints.empty()) return usage;
  std::printf("ok\n%s",
              purpose == Purpose::worker
                  ? "checked as settings of idem worker; --role gateway checks a gateway's\n"
                  : "");
  return done;
}

int print_report_as_json(const SettingsSource& source, const std::string& role, bool asks_server) {
  const auto purpose = role == "worker"    ? Purpose::worker
                       : role == "gateway" ? Purpose::gateway
                                           : source.guessed_purpose();
  const auto report = report_on(source, purpose, asks_server);
  json::Writer out;
  write_report(out, report);
  print_json(out.take());
  return report.complaints.empty() ? done : usage;
}

}  // namespace idem::cli
