#include "cli/commands/approvals_print.hpp"

#include "cli/commands/tables.hpp"
#include "core/bytes/base64.hpp"

#include <array>
#include <cstdio>

namespace idem::cli {
namespace {

std::string listed_names(const json::Value* names) {
  std::string all;
  for (const auto& one : items_of(names)) all += (all.empty() ? "" : ", ") + text_of(&one);
  return all;
}

/// Each text, number and flag of the order on a line of its own: an approver must see all of
/// it, also a member that this version does not know.
void add_members(std::vector<std::vector<std::string>>& rows, const std::string& name,
                 const json::Value& value) {
  if (const auto* const object = std::get_if<json::Object>(&value.is)) {
    for (const auto& member : *object) {
      add_members(rows, name + (name.ends_with(' ') ? "" : ".") + printable(member.name),
                  member.value);
    }
    return;
  }
  if (const auto* const array = std::get_if<json::Array>(&value.is)) {
    std::size_t number = 0;
    for (const auto& one : *array) {
      add_members(rows, name + '[' + std::to_string(number++) + ']', one);
    }
    return;
  }
  rows.push_back({name, text_of(&value)});
  const auto* const text = std::get_if<std::string>(&value.is);
  if (text == nullptr || !name.ends_with("_b64")) return;
  if (const auto bytes = from_base64(*text)) {
    rows.push_back({name.substr(0, name.size() - 4), printable(*bytes)});
  }
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
  rows.push_back({"given by", listed_names(approval->find("given_by"))});
  if (const auto* const order = approval->find("order")) add_members(rows, "order: ", *order);
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
                    text_of(one.find("state")), listed_names(one.find("given_by")),
                    text_of(one.find("needs")), text_of(one.find("ref")),
                    text_of(one.find("asked_at")), text_of(one.find("reason"))});
  }
  print_table(rows, {"REASON", "GIVEN BY"});
  const auto next = text_of(page->find("next"));
  if (next != "-") std::printf("\nmore: --cursor %s\n", next.c_str());
  return true;
}

}  // namespace idem::cli
