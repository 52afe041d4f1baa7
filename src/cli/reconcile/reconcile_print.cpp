#include "cli/reconcile/reconcile_print.hpp"

#include "cli/commands/tables.hpp"
#include "core/bytes/rfc3339.hpp"
#include "core/record/stored_fence.hpp"
#include "json/writer.hpp"

#include <algorithm>
#include <cstdio>

namespace idem::cli {
namespace {

using compare::Finding;
using compare::Theirs;

constexpr std::string_view unread = "lines that could not be read whole";

void write_money(json::Writer& out, const compare::Money& money) {
  if (!money.amount.empty()) out.member("amount", money.amount);
  if (!money.currency.empty()) out.member("currency", money.currency);
}

void write_theirs(json::Writer& out, const Finding& finding) {
  out.name("lines");
  out.begin_array();
  for (const Theirs& line : finding.theirs) {
    out.begin_object();
    out.member("line", line.line);
    if (!line.id.empty()) out.member("id", line.id);
    out.flag("happened", line.happened);
    if (line.unclear) out.member("status_not_named", *line.unclear);
    if (line.at) out.member("at", to_rfc3339(*line.at));
    write_money(out, line.money);
    out.end_object();
  }
  out.end_array();
}

void write_finding(json::Writer& out, const Finding& finding, const Settled* settled) {
  out.begin_object();
  out.member("kind", name_of(finding.kind));
  if (finding.ours) {
    const auto& ours = *finding.ours;
    out.member("ref", to_hex(ours.ref.bytes));
    out.member("state", idem::name_of(ours.state));
    out.member("fence", stored_fence(ours.fence));
    out.flag("contested", ours.is_contested);
    out.member("created_at", to_rfc3339(ours.created_at));
    if (ours.status != 0) out.member("response_status", ours.status);
    write_money(out, ours.money);
  }
  write_theirs(out, finding);
  out.member("why", finding.why);
  if (settled != nullptr) {
    if (!settled->as.empty()) out.member("resolved_as", settled->as);
    if (!settled->why.empty()) out.member("left", settled->why);
  }
  out.end_object();
}

std::string shown(const compare::Money& money) {
  if (money.amount.empty()) return money.currency;
  return money.currency.empty() ? money.amount : money.amount + " " + money.currency;
}

std::string ours_text(const Finding& finding) {
  if (!finding.ours) return "-";
  const auto& ours = *finding.ours;
  std::string text(idem::name_of(ours.state));
  if (ours.status != 0) text += " " + std::to_string(ours.status);
  if (ours.is_contested) text += ", contested";
  const std::string money = shown(ours.money);
  return money.empty() ? text : text + ", " + money;
}

std::string theirs_text(const Finding& finding) {
  constexpr std::size_t lines_max = 4;
  std::string text;
  for (std::size_t i = 0; i < finding.theirs.size() && i < lines_max; ++i) {
    const Theirs& line = finding.theirs[i];
    text += text.empty() ? "line " : "; line ";
    text += std::to_string(line.line);
    if (!line.id.empty()) text += " " + printable(line.id);
    if (line.unclear) {
      text += " \"" + printable(*line.unclear) + "\"";
    } else if (!line.happened) {
      text += " refused";
    }
    if (const auto money = shown(line.money); !money.empty()) text += ", " + money;
  }
  if (finding.theirs.size() > lines_max) text += "; ...";
  return text.empty() ? "-" : text;
}

std::string why_text(const Finding& finding, const Settled* settled) {
  std::string text = finding.why;
  if (settled == nullptr) return text;
  if (!settled->as.empty()) return text + "; resolved as " + settled->as;
  return text + "; left: " + printable(settled->why);
}

void print_unclear(const ComparisonReport& report) {
  std::printf("\nstatuses that neither --happened nor --refused names; add them to one of both:\n");
  for (const auto& [status, lines] : report.unclear) {
    std::printf("  \"%s\": %llu lines\n", printable(status).c_str(),
                static_cast<unsigned long long>(lines));
  }
  if (report.unclear_others > 0) {
    std::printf("  others: %llu lines\n", static_cast<unsigned long long>(report.unclear_others));
  }
}

const Settled* settled_of(const ComparisonReport& report, std::size_t finding) {
  const auto found = report.settled.find(finding);
  return found != report.settled.end() ? &found->second : nullptr;
}

}  // namespace

std::uint64_t ComparisonReport::differences() const noexcept {
  const auto ended = std::ranges::count_if(settled, [&](const auto& one) {
    return !one.second.as.empty() && is_difference(result.findings[one.first].kind);
  });
  return result.differences() - static_cast<std::uint64_t>(ended);
}

std::size_t ComparisonReport::left() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(settled, [](const auto& one) { return one.second.as.empty(); }));
}

void print_comparison_json(const ComparisonReport& report) {
  const auto& result = report.result;
  json::Writer out;
  out.begin_object();
  out.flag("complete", report.complete());
  out.member("differences", report.differences());
  out.name("counts");
  out.begin_object();
  for (std::size_t i = 0; i < compare::kinds; ++i) {
    out.member(name_of(static_cast<compare::Kind>(i)), result.counts[i]);
  }
  out.member("agree_by_existence", result.by_existence);
  out.end_object();
  out.name("export");
  out.begin_object();
  out.member("name", report.name);
  out.member("sha256", report.digest);
  out.member("lines", report.lines);
  out.member("bad_lines", report.bad_lines);
  out.end_object();
  out.name("bad_lines");
  out.begin_array();
  for (const auto& place : report.bad_places) out.text(place);
  out.end_array();
  out.name("statuses_not_named");
  out.begin_array();
  for (const auto& [status, lines] : report.unclear) {
    out.begin_object();
    out.member("status", status);
    out.member("lines", lines);
    out.end_object();
  }
  out.end_array();
  out.member("lines_of_further_statuses", report.unclear_others);
  out.name("findings");
  out.begin_array();
  for (std::size_t i = 0; i < result.findings.size(); ++i) {
    write_finding(out, result.findings[i], settled_of(report, i));
  }
  out.end_array();
  out.end_object();
  std::printf("%s\n", out.take().c_str());
}

void print_comparison(const ComparisonReport& report, std::size_t rows) {
  const auto& result = report.result;
  if (!result.findings.empty() && rows > 0) {
    std::vector<std::vector<std::string>> table{{"FINDING", "REF", "OURS", "THEIRS", "WHY"}};
    const std::size_t count = std::min(rows, result.findings.size());
    for (std::size_t i = 0; i < count; ++i) {
      const Finding& finding = result.findings[i];
      table.push_back({std::string(name_of(finding.kind)),
                       finding.ours ? to_hex(finding.ours->ref.bytes) : "-", ours_text(finding),
                       theirs_text(finding), why_text(finding, settled_of(report, i))});
    }
    print_table(table, {"WHY", "THEIRS", "OURS"});
    if (count < result.findings.size()) {
      std::printf("and %zu more: --rows N, or --json for all\n", result.findings.size() - count);
    }
    std::printf("\n");
  }
  std::vector<std::vector<std::string>> counts;
  for (std::size_t i = 0; i < compare::kinds; ++i) {
    const compare::Kind kind = static_cast<compare::Kind>(i);
    std::string note;
    if (kind == compare::Kind::agree && result.by_existence > 0) {
      note =
          std::to_string(result.by_existence) + " of them by existence only: no answer is stored";
    }
    counts.push_back({std::string(name_of(kind)), std::to_string(result.counts[i]), note});
  }
  print_rows(counts);
  std::printf("\n%s: %llu lines, sha256 %s\n", printable(report.name).c_str(),
              static_cast<unsigned long long>(report.lines), report.digest.c_str());
  if (!report.unclear.empty()) print_unclear(report);
  if (!report.complete()) {
    std::printf("INCOMPLETE: %llu %s\n", static_cast<unsigned long long>(report.bad_lines),
                std::string(unread).c_str());
  }
}

}  // namespace idem::cli
