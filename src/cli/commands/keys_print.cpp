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

std::string list_text(const Value* texts) {
  std::string all;
  for (const auto& one : items_of(texts)) all += (all.empty() ? "" : ", ") + text_of(&one);
  return printable(all);
}

/// That nothing was found proves nothing where the value was not indexed.
void print_searched(const Value& search, bool is_empty) {
  const auto yes = [&](const char* name) { return text_of(search.find(name)) == "yes"; };
  if (is_empty) std::printf("no record was found by this value\n");
  if (!yes("configured")) {
    std::printf("nothing is indexed now: set search.requests or search.answers in the settings\n");
  } else {
    const std::string requests = list_text(search.find("requests"));
    const std::string answers = list_text(search.find("answers"));
    std::printf("indexed since %s: trace ids, the upstream's references%s%s%s%s\n",
                text_of(search.find("since")).c_str(), requests.empty() ? "" : "; in requests ",
                requests.c_str(), answers.empty() ? "" : "; in answers ", answers.c_str());
  }
  if (yes("earlier_settings")) std::printf("before that, other values were indexed\n");
  if (yes("more")) std::printf("more records have this value than are shown\n");
  const std::string unreadable = text_of(search.find("unreadable"));
  if (unreadable != "0" && unreadable != "-") {
    std::printf("%s lines of the index cannot be read\n", unreadable.c_str());
  }
  if (is_empty) {
    std::printf("an older record, or one whose value was not written, is found by key or ref\n");
  }
}

}  // namespace

bool print_found(const std::string& json) {
  const auto page = json::parse(json);
  const auto* const search = page ? page->find("search") : nullptr;
  if (search == nullptr) return false;
  const auto& keys = items_of(page->find("keys"));
  if (!keys.empty() && !print_page(json)) return false;
  if (!keys.empty()) std::printf("\n");
  for (const auto& record : keys) {
    std::printf("%s found by %s\n", text_of(record.find("ref")).c_str(),
                list_text(record.find("found_by")).c_str());
  }
  if (!keys.empty()) std::printf("\n");
  print_searched(*search, keys.empty());
  return true;
}

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
