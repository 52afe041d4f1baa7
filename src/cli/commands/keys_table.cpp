#include "cli/commands/keys_table.hpp"

#include "cli/commands/tables.hpp"
#include "core/bytes/rfc3339.hpp"

#include <algorithm>
#include <cstdio>

namespace idem::cli {
namespace {

using json::Value;

/// "40s", "12m", "5h", "3d": in the largest unit that gives at least 2.
std::string age_text(const std::string& since, const std::string& now) {
  const auto from = parse_rfc3339(since);
  const auto to = parse_rfc3339(now);
  if (!from || !to) return "-";
  struct Unit {
    const char* name;
    std::int64_t seconds;
  };
  static constexpr Unit units[] = {{"d", 86'400}, {"h", 3'600}, {"m", 60}};
  const std::int64_t seconds = std::max<std::int64_t>((*to - *from).count(), 0) / 1'000;
  for (const auto& [name, size] : units) {
    if (seconds >= 2 * size) return std::to_string(seconds / size) + name;
  }
  return std::to_string(seconds) + "s";
}

/// Why the record is in its state, and what happens next.
std::string reason_of(const Value& record) {
  const auto text = [&](const char* name) { return text_of(record.find(name)); };
  const std::string state = text("state");
  const std::string code = text("last_error_code");
  if (state == "in_progress") return "locked until " + text("locked_until");
  if (state == "failed_retryable") return text("release_basis") + ": " + code;
  if (state != "unknown") return code;
  const std::string turns = text("reconcile_attempts");
  const std::string next = text("reconcile_after");
  const std::string why = code == "-" ? "its lease ended" : code;
  if (next != "-") return why + "; asked " + turns + " times, again at " + next;
  if (turns != "0") return "left to operators after " + turns + " turns; " + why;
  return text("provider") == "-" ? "no provider is asked; " + why : why;
}

}  // namespace

std::optional<std::string> KeysTable::add(const std::string& json) {
  const auto page = json::parse(json);
  if (!page || page->find("keys") == nullptr) return std::nullopt;
  const std::string now = text_of(page->find("now"));
  for (const auto& record : items_of(page->find("keys"))) {
    const auto text = [&](const char* name) { return text_of(record.find(name)); };
    const std::string created_at = text("created_at");
    rows_.push_back({created_at,
                     {text("ref"), text("state"), age_text(created_at, now), text("fence"),
                      text("response_status"), text("contested"), text("scope"), text("operation"),
                      reason_of(record)}});
  }
  const std::string next = text_of(page->find("next"));
  return next == "-" ? std::string() : next;
}

void KeysTable::sort() {
  // RFC 3339 in one zone and length: the order of the texts is that of the moments.
  std::ranges::stable_sort(rows_, {}, &Row::created_at);
}

void KeysTable::print_rows_of(std::size_t count) const {
  std::vector<std::vector<std::string>> table{
      {"REF", "STATE", "AGE", "FENCE", "STATUS", "CONTESTED", "SCOPE", "OPERATION", "REASON"}};
  for (std::size_t i = 0; i < count; ++i) table.push_back(rows_[i].cells);
  print_table(table, {"REASON", "SCOPE", "OPERATION"});
}

void KeysTable::print() {
  sort();
  print_rows_of(rows_.size());
}

void KeysTable::print_oldest(std::size_t rows_max, bool is_part) {
  sort();
  const std::size_t count = std::min(rows_max, rows_.size());
  print_rows_of(count);
  if (is_part) {
    std::printf(
        "\nthe oldest of the first %zu records; there are more: filter them "
        "with --state, --scope, --older-than or --newer-than\n",
        rows_.size());
  } else if (count < rows_.size()) {
    std::printf(
        "\nand %zu younger: filter them with --state, --scope or --older-than, or use --json\n",
        rows_.size() - count);
  }
}

}  // namespace idem::cli
