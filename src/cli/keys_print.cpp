#include "cli/keys_print.hpp"

#include "json/value.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

namespace idem::cli {
namespace {

using json::Value;

std::string text_of(const Value* value) {
  if (value == nullptr) return "-";
  if (const auto* text = std::get_if<std::string>(&value->is)) {
    return text->empty() ? "-" : printable(*text);
  }
  if (const auto* number = std::get_if<std::int64_t>(&value->is)) return std::to_string(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&value->is)) return std::to_string(*number);
  if (const auto* flag = std::get_if<bool>(&value->is)) return *flag ? "yes" : "no";
  return "-";
}

const json::Array& items_of(const Value* value) {
  static const json::Array none;
  const auto* items = value != nullptr ? std::get_if<json::Array>(&value->is) : nullptr;
  return items != nullptr ? *items : none;
}

void print_rows(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      line += row[i] + (last ? "" : std::string(widths[i] - row[i].size() + 2, ' '));
    }
    std::printf("%s\n", line.c_str());
  }
}

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

std::string printable(std::string_view text) {
  std::string shown(text);
  std::ranges::replace_if(shown, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  // C1 controls, as UTF-8 spells them: C2 80 to C2 9F.
  for (std::size_t i = 0; i + 1 < shown.size(); ++i) {
    const auto next = static_cast<unsigned char>(shown[i + 1]);
    if (static_cast<unsigned char>(shown[i]) == 0xC2 && next >= 0x80 && next < 0xA0) {
      shown.replace(i, 2, "?");
    }
  }
  return shown;
}

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
