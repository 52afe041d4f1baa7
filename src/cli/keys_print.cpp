#include "cli/keys_print.hpp"

#include "cli/tables.hpp"

#include <array>
#include <cstdio>

namespace idem::cli {
namespace {

using json::Value;

void print_evidence(const Value& record) {
  const auto& entries = items_of(record.find("evidence"));
  if (entries.empty()) return;
  std::printf("\nevidence\n");
  std::vector<std::vector<std::string>> rows{
      {"RECORDED", "SOURCE", "FENCE", "BEFORE", "AFTER", "APPLIED", "REASON", "EVIDENCE"}};
  for (const auto& entry : entries) {
    std::vector<std::string> row;
    for (const auto* name :
         {"recorded_at", "source", "fence", "before", "after", "applied", "reason", "evidence"}) {
      row.push_back(text_of(entry.find(name)));
    }
    rows.push_back(std::move(row));
  }
  print_rows(rows);
}

}  // namespace

void print_page(const std::string& json) {
  const auto page = json::parse(json);
  if (!page) return;
  std::vector<std::vector<std::string>> rows{
      {"REF", "STATE", "FENCE", "CREATED", "LOCKED UNTIL", "STATUS", "SCOPE", "OPERATION"}};
  for (const auto& record : items_of(page->find("keys"))) {
    std::vector<std::string> row;
    for (const auto* name : {"ref", "state", "fence", "created_at", "locked_until",
                             "response_status", "scope", "operation"}) {
      row.push_back(text_of(record.find(name)));
    }
    rows.push_back(std::move(row));
  }
  print_rows(rows);
  const auto next = text_of(page->find("next"));
  if (next != "-") std::printf("\nmore: --cursor %s\n", next.c_str());
}

void print_record(const std::string& json) {
  const auto record = json::parse(json);
  if (!record) return;
  static constexpr std::array shown{"ref",
                                    "state",
                                    "scope",
                                    "operation",
                                    "fence",
                                    "owner",
                                    "created_at",
                                    "changed_at",
                                    "locked_until",
                                    "completed_at",
                                    "expires_at",
                                    "tombstone_until",
                                    "lease_policy",
                                    "dispatched",
                                    "recovery_point",
                                    "release_basis",
                                    "last_error_code",
                                    "reconcile_after",
                                    "reconcile_attempts",
                                    "upstream_reference",
                                    "response_status"};
  std::vector<std::vector<std::string>> rows;
  for (const auto* name : shown) rows.push_back({name, text_of(record->find(name))});
  print_rows(rows);
  print_evidence(*record);
}

}  // namespace idem::cli
