#include "check/report/summary.hpp"

#include <fmt/format.h>
#include <idem/assert.hpp>

#include <algorithm>

namespace idem::check {
namespace {

void count(Counts& counts, Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      ++counts.pass;
      return;
    case Outcome::fail:
      ++counts.fail;
      return;
    case Outcome::skip:
      ++counts.skip;
      return;
  }
}

/// "2 findings (1 money, 1 courtesy)"
std::string findings_text(const Report& report) {
  std::string by_severity;
  for (const Severity severity : all_severities) {
    const std::size_t number = counts_of(report, severity).fail;
    if (number == 0) continue;
    by_severity +=
        fmt::format("{}{} {}", by_severity.empty() ? "" : ", ", number, name_of(severity));
  }
  return counted(counts_of(report).fail, "finding") + " (" + by_severity + ")";
}

/// "the 10 of 42 cases that could be judged"
std::string judged_text(const Report& report) {
  const Counts counts = counts_of(report);
  const std::size_t judged = counts.pass + counts.fail;
  const std::size_t known = cases_known(report);
  if (judged == known) return "all " + counted(known, "case");
  const bool is_choice = counts.all() < known || !report.ended_early.empty();
  return fmt::format("the {} of {} that {} judged", judged, counted(known, "case"),
                     is_choice ? "were" : "could be");
}

}  // namespace

Counts counts_of(const Report& report) {
  Counts counts;
  for (const auto& result : report.cases) count(counts, result.outcome);
  return counts;
}

Counts counts_of(const Report& report, Severity severity) {
  Counts counts;
  for (const auto& result : report.cases) {
    if (text_of(result).severity == severity) count(counts, result.outcome);
  }
  return counts;
}

const CaseText& text_of(const CaseResult& result) {
  IDEM_ASSERT(result.text != nullptr);
  return *result.text;
}

std::vector<const CaseResult*> findings_of(const Report& report) {
  std::vector<const CaseResult*> findings;
  for (const Severity severity : all_severities) {
    for (const auto& result : report.cases) {
      if (result.outcome != Outcome::fail || text_of(result).severity != severity) continue;
      findings.push_back(&result);
    }
  }
  return findings;
}

bool is_unconfirmed(const CaseResult& result) noexcept {
  return result.outcome != Outcome::fail && result.failures > 0;
}

std::vector<const CaseResult*> unconfirmed_of(const Report& report) {
  std::vector<const CaseResult*> all;
  for (const auto& result : report.cases) {
    if (is_unconfirmed(result)) all.push_back(&result);
  }
  return all;
}

Conclusion conclusion_of(const Report& report) {
  const Counts counts = counts_of(report);
  if (counts.fail > 0) return Conclusion::fail;
  if (!report.ended_early.empty()) return Conclusion::incomplete;
  return counts.pass == 0 ? Conclusion::untested : Conclusion::pass;
}

std::string_view word_of(Conclusion conclusion) noexcept {
  switch (conclusion) {
    case Conclusion::pass:
      return "pass";
    case Conclusion::fail:
      return "fail";
    case Conclusion::incomplete:
      return "incomplete";
    case Conclusion::untested:
      return "not tested";
  }
  return "";
}

std::vector<SkipGroup> skip_groups_of(const Report& report) {
  std::vector<SkipGroup> groups;
  for (const auto& result : report.cases) {
    if (result.outcome != Outcome::skip) continue;
    std::string reason = result.detail;
    while (reason.ends_with('.') || reason.ends_with(' ')) reason.pop_back();
    if (reason.empty()) reason = "No reason is given";
    auto group = std::ranges::find(groups, reason, &SkipGroup::reason);
    if (group == groups.end()) group = groups.insert(group, {std::move(reason), {}});
    group->ids.push_back(text_of(result).id);
  }
  return groups;
}

std::string counted(std::size_t number, std::string_view thing) {
  return fmt::format("{} {}{}", number, thing, number == 1 ? "" : "s");
}

std::string duration_text(std::chrono::milliseconds time) {
  const auto millis = time.count();
  if (millis < 1'000) return fmt::format("{} ms", millis);
  if (millis < 60'000) return fmt::format("{}.{} s", millis / 1'000, millis % 1'000 / 100);
  return fmt::format("{} min {} s", millis / 60'000, millis % 60'000 / 1'000);
}

std::string attempts_sentence(const CaseResult& result) {
  if (result.failures <= 0) return {};
  return fmt::format("Failed in {} of {}.", result.failures,
                     counted(static_cast<std::size_t>(std::max(result.times, 0)), "attempt"));
}

std::size_t cases_known(const Report& report) noexcept {
  return std::max(report.cases_known, report.cases.size());
}

std::string verdict_sentence(const Report& report) {
  const std::string early =
      report.ended_early.empty() ? "" : " The run ended early: " + report.ended_early + ".";
  switch (conclusion_of(report)) {
    case Conclusion::untested:
      return fmt::format("No case could be judged against {}.{}", report.target, early);
    case Conclusion::fail:
      return fmt::format("{} fails the profile {}: {} in {}.{}", report.target, report.profile,
                         findings_text(report), judged_text(report), early);
    case Conclusion::incomplete:
    case Conclusion::pass:
      break;
  }
  return fmt::format("{} passes {} in the profile {}.{}", report.target, judged_text(report),
                     report.profile, early);
}

std::string run_sentence(const Report& report) {
  return fmt::format("Profile {}, seed {}, key mark {}, {}, {}.", report.profile, report.seed,
                     report.key_mark, counted(report.requests, "request"),
                     duration_text(report.took));
}

}  // namespace idem::check
