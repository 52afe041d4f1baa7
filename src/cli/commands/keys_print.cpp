#include "cli/commands/keys_print.hpp"

#include "cli/commands/keys_table.hpp"
#include "cli/commands/tables.hpp"

#include <array>
#include <cstdio>

namespace idem::cli {
namespace {

using json::Value;

/// The evidence of a log entry as text: the members of evidence that Idem wrote as JSON, or the
/// text itself.
std::string evidence_text(const Value& entry) {
  const std::string text = text_of(entry.find("evidence"));
  const auto parsed = json::parse(text);
  const auto* const finding = parsed ? parsed->find("said") : nullptr;
  if (finding == nullptr) return text;
  std::string all = text_of(finding);
  for (const auto* name : {"event", "status", "body_sha256"}) {
    if (const auto* value = parsed->find(name)) {
      all += std::string(", ") + name + " " + text_of(value);
    }
  }
  if (const auto* kept = parsed->find("kept")) {
    all += ", its answer with status " + text_of(kept->find("status")) + " is stored";
  }
  return all;
}

std::string change_text(const Value& entry) {
  const std::string before = text_of(entry.find("before"));
  const std::string after = text_of(entry.find("after"));
  if (before == "-" || before == "none") return "there was no record";
  if (text_of(entry.find("applied")) == "yes") return before + " became " + after;
  return "nothing changed; the state was " + before;
}

/// Oldest entry first.
void print_evidence(const Value& record) {
  if (const auto* damage = record.find("evidence_damaged")) {
    std::printf("\nevidence\n  cannot be shown: %s\n", printable(text_of(damage)).c_str());
    return;
  }
  const auto& entries = items_of(record.find("evidence"));
  if (entries.empty()) return;
  std::printf("\nevidence\n");
  for (const auto& entry : entries) {
    const auto recorded = text_of(entry.find("recorded_at"));
    std::printf("  %s  %s, about the attempt with fence %s\n", recorded.c_str(),
                printable(text_of(entry.find("source"))).c_str(),
                text_of(entry.find("fence")).c_str());
    const auto line = [](const char* name, const std::string& text) {
      if (!text.empty() && text != "-")
        std::printf("      %-9s %s\n", name, printable(text).c_str());
    };
    const auto observed = text_of(entry.find("observed_at"));
    line("evidence", evidence_text(entry));
    line("reason", text_of(entry.find("reason")));
    line("observed", observed == recorded ? "" : observed);
    line("result", change_text(entry));
  }
}

}  // namespace

bool print_page(const std::string& json) {
  KeysTable table;
  const auto next = table.add(json);
  if (!next) return false;
  table.print();
  if (next->empty()) return true;
  std::printf("\nmore: --cursor %s (pages are in the order of the refs, each sorted by age)\n",
              next->c_str());
  return true;
}

bool print_record(const std::string& json) {
  const auto record = json::parse(json);
  if (!record || record->find("ref") == nullptr) return false;
  static constexpr std::array shown{"ref",
                                    "state",
                                    "contested",
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
                                    "provider",
                                    "response_status",
                                    "trace_id"};
  std::vector<std::vector<std::string>> rows;
  for (const auto* name : shown) rows.push_back({name, text_of(record->find(name))});
  print_rows(rows);
  print_evidence(*record);
  return true;
}

}  // namespace idem::cli
