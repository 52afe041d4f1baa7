#include "cli/commands/shadow_command.hpp"

#include "cli/commands/tables.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace idem::cli {
namespace {

using json::Value;

struct Column {
  const char* member;
  const char* title;
  bool always = false;
};
constexpr std::array count_columns{Column{"requests", "requests", true},
                                   Column{"first", "first", true},
                                   Column{"duplicates", "duplicates", true},
                                   Column{"races", "races", true},
                                   Column{"misuse", "misuse", true},
                                   Column{"missing_key", "no key", true},
                                   Column{"bad_key", "bad key"},
                                   Column{"missing_scope", "no scope"},
                                   Column{"refused", "refused"},
                                   Column{"expired", "expired"},
                                   Column{"not_kept", "not kept"},
                                   Column{"unknown", "unknown", true},
                                   Column{"unknown_retries", "retries of unknown"},
                                   Column{"not_observed", "not observed"}};

std::uint64_t count_in(const Value& row, const char* member) {
  const auto* const value = row.find(member);
  if (value == nullptr) return 0;
  if (const auto* number = std::get_if<std::int64_t>(&value->is)) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(*number, 0));
  }
  const auto* const large = std::get_if<std::uint64_t>(&value->is);
  return large != nullptr ? *large : 0;
}

/// A table whose columns without a count are left out.
class ShadowTable {
 public:
  explicit ShadowTable(std::string first) : first_(std::move(first)) {}

  void add(std::string name, const Value& counts) { rows_.push_back({std::move(name), &counts}); }

  void print() const {
    Rows rows{{first_}};
    for (const auto& [name, counts] : rows_) rows.push_back({name});
    for (const Column& column : count_columns) {
      const bool is_shown = column.always || std::ranges::any_of(rows_, [&](const auto& row) {
                              return count_in(*row.second, column.member) > 0;
                            });
      if (!is_shown) continue;
      rows[0].push_back(column.title);
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        rows[i + 1].push_back(std::to_string(count_in(*rows_[i].second, column.member)));
      }
    }
    print_table(rows, {first_});
  }

 private:
  std::string first_;
  std::vector<std::pair<std::string, const Value*>> rows_;
};

struct Consequence {
  const char* member;
  const char* text;
};
constexpr std::array consequences{
    Consequence{"duplicates", "would get the stored answer and not run again"},
    Consequence{"misuse", "would get 422: the request differs from the first one of its key"},
    Consequence{"missing_key", "would get 400: no key"},
    Consequence{"bad_key", "would get 400: a key of a wrong form or time"},
    Consequence{"missing_scope", "would get 401: no scope"},
    Consequence{"refused", "would be refused for another reason"},
    Consequence{"expired", "would get 410: the key is too old"},
    Consequence{"not_kept", "would get 409: done, and the answer was not kept"},
    Consequence{"unknown_retries", "would get 409: nobody knows whether the first one ran"}};

/// What switching the route on would have done, in one sentence.
std::string sentence(const Value& route) {
  std::string parts;
  const auto add = [&](std::uint64_t count, const std::string& text) {
    if (count == 0) return;
    parts += (parts.empty() ? "" : "; ") + std::to_string(count) + " " + text;
  };
  for (const auto& [member, text] : consequences) add(count_in(route, member), text);
  const bool waits = text_of(route.find("mode")) == "wait";
  add(count_in(route, "races"), waits ? "would wait for a running attempt of the same key"
                                      : "would get 409: an attempt of the same key runs");
  const std::string name = text_of(route.find("route"));
  const std::string requests = std::to_string(count_in(route, "requests"));
  std::string text = name + ": with enforce: on, of " + requests + " requests ";
  text += parts.empty() ? "none would have got another answer" : parts;
  if (const auto unknown = count_in(route, "unknown"); unknown > 0) {
    text += ". " + std::to_string(unknown) + " attempts would be left unknown";
  }
  if (const auto unseen = count_in(route, "not_observed"); unseen > 0) {
    text += ". " + std::to_string(unseen) + " were not observed";
  }
  return text + ".";
}

std::string reasons(const Value& route) {
  const auto* const by = route.find("not_observed_by");
  const auto* const members = by != nullptr ? std::get_if<json::Object>(&by->is) : nullptr;
  std::string text;
  if (members == nullptr) return text;
  for (const auto& member : *members) {
    const std::string count = text_of(&member.value);
    if (count == "0") continue;
    text += (text.empty() ? "" : ", ") + std::string(member.name) + " " + count;
  }
  return text;
}

void print_route(const Value& route) {
  std::printf("\n%s, %s since %s\n", text_of(route.find("route")).c_str(),
              text_of(route.find("enforce")) == "shadow" ? "in shadow" : "no longer in shadow",
              text_of(route.find("since")).c_str());
  ShadowTable table("tenant, client");
  for (const auto& tenant : items_of(route.find("tenants"))) {
    table.add(text_of(tenant.find("scope")), tenant);
    for (const auto& client : items_of(tenant.find("clients"))) {
      table.add("  " + text_of(client.find("client")), client);
    }
  }
  table.print();
  if (const auto why = reasons(route); !why.empty()) {
    std::printf("not observed: %s\n", why.c_str());
  }
  const auto& examples = items_of(route.find("examples"));
  if (examples.empty()) return;
  Rows rows{{"example", "at", "tenant", "client", "request", "record", "why"}};
  for (const auto& one : examples) {
    rows.push_back({text_of(one.find("kind")), text_of(one.find("at")), text_of(one.find("scope")),
                    text_of(one.find("client")),
                    text_of(one.find("method")) + " " + text_of(one.find("path")),
                    text_of(one.find("operation_ref")), text_of(one.find("why"))});
  }
  std::printf("\n");
  print_table(rows, {"why", "request", "tenant", "client"});
}

/// False: another server's answer.
bool print_shadow_report(const std::string& json) {
  const auto report = json::parse(json);
  if (!report || text_of(report->find("since")) == "-") return false;
  const auto& routes = items_of(report->find("routes"));
  if (routes.empty()) {
    std::printf(
        "no route is in shadow: write enforce: shadow for one, or --enforce shadow for all\n");
    return true;
  }
  ShadowTable table("route");
  for (const auto& route : routes) table.add(text_of(route.find("route")), route);
  table.print();
  for (const auto& route : routes) print_route(route);
  std::printf("\n");
  for (const auto& route : routes) std::printf("%s\n", sentence(route).c_str());
  return true;
}

}  // namespace

ShadowCommand::ShadowCommand(const Command& program)
    : OperatorCommand(program, "shadow",
                      "Show what enforcement would have done on routes with enforce: shadow",
                      {.has_verbs = true, .decides = false}) {
  const Command report = declare("report", "Counts by route, tenant and client, with examples");
  report.add_option("--route", route_, "only the route of this name, or path");
}

int ShadowCommand::run() {
  std::string target = "/v1/shadow";
  add_parameter(target, "route", route_);
  return finish(target, nullptr, print_shadow_report);
}

}  // namespace idem::cli
