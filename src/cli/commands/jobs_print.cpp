#include "cli/commands/jobs_print.hpp"

#include "cli/commands/tables.hpp"

#include <array>
#include <cstdio>

namespace idem::cli {
namespace {

void print_more(const json::Value& page, const char* flag) {
  const auto next = text_of(page.find("next"));
  if (next != "-") std::printf("\nmore: %s %s\n", flag, next.c_str());
}

Rows rows_of(const json::Value& page, const char* items, const std::vector<const char*>& names) {
  Rows rows;
  for (const auto& one : items_of(page.find(items))) {
    auto& row = rows.emplace_back();
    for (const auto* const name : names) row.push_back(text_of(one.find(name)));
  }
  return rows;
}

}  // namespace

bool print_job(const std::string& json) {
  const auto job = json::parse(json);
  if (!job || job->find("job") == nullptr) return false;
  static constexpr std::array shown{"job",    "what",    "as",       "state",        "count",
                                    "done",   "left",    "refused",  "rate",         "who",
                                    "reason", "made_at", "ended_at", "cancelled_by", "trouble"};
  Rows rows;
  for (const auto* const name : shown) rows.push_back({name, text_of(job->find(name))});
  print_rows(rows);
  return true;
}

bool print_jobs(const std::string& json) {
  const auto page = json::parse(json);
  if (!page || page->find("jobs") == nullptr) return false;
  Rows rows =
      rows_of(*page, "jobs",
              {"job", "what", "state", "count", "done", "refused", "left", "who", "made_at"});
  rows.insert(rows.begin(),
              {"JOB", "WHAT", "STATE", "COUNT", "DONE", "REFUSED", "LEFT", "WHO", "MADE"});
  print_table(rows, {"WHO"});
  print_more(*page, "--cursor");
  return true;
}

bool print_job_results(const std::string& json) {
  const auto page = json::parse(json);
  if (!page || page->find("results") == nullptr) return false;
  Rows rows = rows_of(*page, "results", {"ref", "fence", "verdict", "state"});
  rows.insert(rows.begin(), {"REF", "FENCE", "VERDICT", "STATE"});
  print_table(rows, {});
  print_more(*page, "--after");
  return true;
}

}  // namespace idem::cli
