#include "cli/commands/outbox_print.hpp"

#include "cli/commands/tables.hpp"

#include <array>
#include <cstdio>

namespace idem::cli {
namespace {

void add_row(Rows& rows, const json::Value& from, std::initializer_list<const char*> names) {
  auto& row = rows.emplace_back();
  for (const auto* const name : names) row.push_back(text_of(from.find(name)));
}

}  // namespace

bool print_messages(const std::string& json) {
  const auto page = json::parse(json);
  if (!page || page->find("messages") == nullptr) return false;
  Rows rows{{"ID", "STATE", "DESTINATION", "TYPE", "CREATED", "DUE", "TRIES", "LAST ERROR"}};
  for (const auto& one : items_of(page->find("messages"))) {
    add_row(
        rows, one,
        {"id", "state", "destination", "type", "created_at", "due_at", "attempts", "last_error"});
  }
  print_table(rows, {"LAST ERROR", "DESTINATION", "TYPE"});
  const auto next = text_of(page->find("next"));
  if (next != "-") std::printf("\nmore: --cursor %s\n", next.c_str());
  return true;
}

bool print_message(const std::string& json) {
  const auto message = json::parse(json);
  if (!message || message->find("id") == nullptr) return false;
  static constexpr std::array shown{"id",
                                    "state",
                                    "destination",
                                    "type",
                                    "operation_ref",
                                    "aggregate_type",
                                    "aggregate_id",
                                    "created_at",
                                    "due_at",
                                    "ended_at",
                                    "attempts",
                                    "in_flight",
                                    "may_have_arrived",
                                    "reference",
                                    "last_error",
                                    "content_type",
                                    "payload"};
  Rows rows;
  for (const auto* const name : shown) rows.push_back({name, text_of(message->find(name))});
  print_rows(rows);
  const auto& history = items_of(message->find("history"));
  if (history.empty()) return true;
  std::printf("\nhistory\n");
  Rows entries{{"AT", "TRY", "HOW", "WHY"}};
  for (const auto& entry : history) add_row(entries, entry, {"at", "attempt", "how", "why"});
  print_table(entries, {"WHY"});
  return true;
}

bool print_ordered(const std::string& json) {
  const auto page = json::parse(json);
  if (!page || page->find("messages") == nullptr) return false;
  const auto& messages = items_of(page->find("messages"));
  if (messages.empty()) {
    std::printf("no dead letter matches\n");
    return true;
  }
  const bool is_dry = text_of(page->find("dry_run")) == "yes";
  Rows rows{{"ID", "DESTINATION", "TYPE", "VERDICT"}};
  for (const auto& one : messages) {
    add_row(rows, one, {"id", "destination", "type", "verdict"});
    std::string& verdict = rows.back().back();
    const bool is_done = verdict == "redriven" || verdict == "discarded";
    if (is_dry) verdict = (is_done ? "would be " : "would be refused: ") + verdict;
    if (!is_dry && !is_done) verdict = "refused: " + verdict;
  }
  print_table(rows, {"DESTINATION", "TYPE"});
  if (is_dry) std::printf("\ndry run: nothing was changed\n");
  return true;
}

}  // namespace idem::cli
