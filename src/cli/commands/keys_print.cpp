#include "cli/commands/keys_print.hpp"

#include "cli/commands/keys_table.hpp"
#include "cli/commands/tables.hpp"

#include <array>
#include <cstdio>

namespace idem::cli {
namespace {

using json::Value;

/// What a line of the log found out, as a sentence part: the members that evidence of ours has, or
/// its text.
std::string said(const Value& entry) {
  const std::string text = text_of(entry.find("evidence"));
  const auto parsed = json::parse(text);
  const auto* const word = parsed ? parsed->find("said") : nullptr;
  if (word == nullptr) return text;
  std::string all = text_of(word);
  for (const auto* name : {"event", "status", "body_sha256"}) {
    if (const auto* value = parsed->find(name)) {
      all += std::string(", ") + name + " " + text_of(value);
    }
  }
  if (const auto* kept = parsed->find("kept")) {
    all += ", its answer of status " + text_of(kept->find("status")) + " kept";
  }
  return all;
}

std::string what_became(const Value& entry) {
  const std::string before = text_of(entry.find("before"));
  const std::string after = text_of(entry.find("after"));
  if (before == "-" || before == "none") return "there was no record";
  if (text_of(entry.find("applied")) == "yes") return before + " became " + after;
  return "nothing changed; it was " + before;
}

/// Oldest first, as it came about.
void print_evidence(const Value& record) {
  const auto& entries = items_of(record.find("evidence"));
  if (entries.empty()) return;
  std::printf("\nevidence\n");
  for (const auto& entry : entries) {
    const auto recorded = text_of(entry.find("recorded_at"));
    std::printf("  %s  %s, of the attempt with fence %s\n", recorded.c_str(),
                printable(text_of(entry.find("source"))).c_str(),
                text_of(entry.find("fence")).c_str());
    const auto line = [](const char* name, const std::string& text) {
      if (!text.empty() && text != "-")
        std::printf("      %-9s %s\n", name, printable(text).c_str());
    };
    const auto observed = text_of(entry.find("observed_at"));
    line("said", said(entry));
    line("because", text_of(entry.find("reason")));
    line("observed", observed == recorded ? "" : observed);
    line("so", what_became(entry));
  }
}

}  // namespace

void print_page(const std::string& json) {
  KeysTable table;
  const auto next = table.add(json);
  if (!next) return;
  table.print();
  if (next->empty()) return;
  std::printf("\nmore: --cursor %s (pages are in the order of the refs, each sorted by age)\n",
              next->c_str());
}

void print_record(const std::string& json) {
  const auto record = json::parse(json);
  if (!record) return;
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
                                    "response_status"};
  std::vector<std::vector<std::string>> rows;
  for (const auto* name : shown) rows.push_back({name, text_of(record->find(name))});
  print_rows(rows);
  print_evidence(*record);
}

}  // namespace idem::cli
