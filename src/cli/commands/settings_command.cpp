#include "cli/commands/settings_command.hpp"

#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"
#include "json/value.hpp"

#include <cstdio>

namespace idem::cli {
namespace {

constexpr const char* config_name = "config";

bool says_true(const json::Value* value) {
  const auto* const flag = value != nullptr ? std::get_if<bool>(&value->is) : nullptr;
  return flag != nullptr && *flag;
}

std::string or_none(const std::string& text) { return text == "-" ? "not given" : text; }

/// Null: it would not be refused.
const json::Value* refusal_in(const json::Value& page) {
  const auto* const why = page.find("refused");
  const bool is_none = why == nullptr || std::holds_alternative<std::nullptr_t>(why->is);
  return is_none ? nullptr : why;
}

bool print_changes(const std::string& body) {
  const auto page = json::parse(body);
  if (!page || page->find("changes") == nullptr) return false;
  const auto& changes = items_of(page->find("changes"));
  // Of settings that cannot be read nobody knows how they differ.
  if (changes.empty() && refusal_in(*page) == nullptr) std::printf("no setting differs\n");
  for (const auto& one : changes) {
    std::printf("%s: %s -> %s%s\n", text_of(one.find("name")).c_str(),
                or_none(text_of(one.find("before"))).c_str(),
                or_none(text_of(one.find("after"))).c_str(),
                says_true(one.find("needs_restart")) ? " (needs a restart)" : "");
    const std::string records = text_of(one.find("records"));
    if (records != "-") std::printf("  %s\n", records.c_str());
  }
  return true;
}

}  // namespace

ChangesCommand::ChangesCommand(const Command& config)
    : OperatorCommand(config, "changes",
                      "Show what a reload of the running gateway would change, and what that does "
                      "to records",
                      {.has_verbs = false, .decides = false, .parent = config_name}) {}

int ChangesCommand::run() {
  const auto answer = ask("/v1/settings/changes", nullptr);
  if (!answer) return answer.error();
  if (answer->status != 200) return complain_about(*answer);
  const int shown = show(answer->body, print_changes);
  if (shown != done) return shown;
  const auto page = json::parse(answer->body);
  const auto* const why = page ? refusal_in(*page) : nullptr;
  if (why == nullptr) return done;
  return complain(
      "a reload would be refused, and the gateway keeps the settings that it has: " + text_of(why),
      refused);
}

ReloadCommand::ReloadCommand(const Command& config)
    : OperatorCommand(config, "reload",
                      "Have the running gateway apply the settings of its file, all or none",
                      {.has_verbs = false, .decides = true, .parent = config_name}) {
  command().add_option("--reason", reason_, "for the audit").required();
}

int ReloadCommand::run() {
  json::Writer out;
  out.begin_object();
  out.member("reason", reason_);
  out.end_object();
  const std::string body = out.take();
  return finish("/v1/settings/reload", &body, print_changes);
}

}  // namespace idem::cli
