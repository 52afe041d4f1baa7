#include "cli/commands/approvals_print.hpp"

#include "cli/commands/tables.hpp"

#include <array>
#include <cstdio>

namespace idem::cli {
namespace {

std::string names_of(const json::Value* names) {
  std::string all;
  for (const auto& one : items_of(names)) all += (all.empty() ? "" : ", ") + text_of(&one);
  return all;
}

}  // namespace

bool print_approval(const std::string& json) {
  const auto approval = json::parse(json);
  if (!approval || approval->find("approval") == nullptr) return false;
  static constexpr std::array shown{"approval", "kind",     "state",   "needs",    "reason", "ref",
                                    "seen",     "asked_at", "ends_at", "ended_by", "outcome"};
  std::vector<std::vector<std::string>> rows;
  rows.reserve(2 * shown.size());
  for (const auto* const name : shown) rows.push_back({name, text_of(approval->find(name))});
  rows.push_back({"given by", names_of(approval->find("given_by"))});
  if (const auto* const order = approval->find("order")) {
    for (const auto* const name : {"what", "as", "fence", "evidence", "expected"}) {
      if (order->find(name) != nullptr) {
        rows.push_back({std::string("order: ") + name, text_of(order->find(name))});
      }
    }
  }
  if (const auto* const record = approval->find("record")) {
    for (const auto* const name : {"scope", "operation", "state", "fence"}) {
      if (record->find(name) != nullptr) {
        rows.push_back({std::string("record: ") + name, text_of(record->find(name))});
      }
    }
  }
  print_rows(rows);
  return true;
}

bool print_approvals(const std::string& json) {
  const auto page = json::parse(json);
  if (!page || page->find("approvals") == nullptr) return false;
  std::vector<std::vector<std::string>> rows{
      {"APPROVAL", "KIND", "STATE", "GIVEN BY", "NEEDS", "REF", "ASKED", "REASON"}};
  for (const auto& one : items_of(page->find("approvals"))) {
    rows.push_back({text_of(one.find("approval")), text_of(one.find("kind")),
                    text_of(one.find("state")), names_of(one.find("given_by")),
                    text_of(one.find("needs")), text_of(one.find("ref")),
                    text_of(one.find("asked_at")), text_of(one.find("reason"))});
  }
  print_rows(rows);
  const auto next = text_of(page->find("next"));
  if (next != "-") std::printf("\nmore: --cursor %s\n", next.c_str());
  return true;
}

}  // namespace idem::cli
