#include "cli/commands/status_command.hpp"

#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"

#include <cstdio>

namespace idem::cli {
namespace {

using json::Value;

std::string age_of(const Value* seconds) {
  const std::string text = text_of(seconds);
  return text == "-" ? "never" : text + " s ago";
}

/// A row for the upstream, the authoriser or a provider.
void add_availability(Rows& rows, const std::string& name, const Value& reported) {
  const bool is_up = text_of(reported.find("up")) == "yes";
  std::string text = is_up ? "up" : "DOWN";
  const auto* const answered = reported.find("last_answer_seconds");
  text += text_of(answered) == "-" ? ", no answer since the start"
                                   : ", last answer " + age_of(answered);
  const auto* const failure = reported.find("last_failure");
  if (failure != nullptr && std::holds_alternative<json::Object>(failure->is)) {
    text += "; last failure " + age_of(failure->find("seconds")) + ": " +
            text_of(failure->find("reason")) + ", " + text_of(failure->find("detail"));
  }
  rows.push_back({name, text});
}

/// Keys of this time are missing.
void add_restore(Rows& rows, const Value* restored) {
  const bool is_there = restored != nullptr && std::holds_alternative<json::Object>(restored->is);
  if (!is_there) return;
  const std::string from = text_of(restored->find("copied_at"));
  std::string text = "keys are missing from " + (from == "-" ? "an unknown moment" : from) +
                     " to " + text_of(restored->find("restored_at")) + "; open in the copy:";
  for (const char* const state : {"in_progress", "pending", "failed_retryable"}) {
    text += " " + text_of(restored->find(state)) + " " + state + ",";
  }
  text.back() = ' ';
  rows.push_back({"restored", text + "now unknown"});
}

void add_store(Rows& rows, const Value& status) {
  const auto* const store = status.find("store");
  if (store == nullptr) return;
  const bool is_up = text_of(store->find("up")) == "yes";
  std::string text = is_up ? "up" : "DOWN";
  if (const auto* why = store->find("detail")) text += ": " + text_of(why);
  rows.push_back({"store", text});
  const auto* const keys = store->find("keys");
  const auto* const states = keys != nullptr ? std::get_if<json::Object>(&keys->is) : nullptr;
  if (states == nullptr) return;
  std::string counts;
  for (const auto& member : *states) {
    counts +=
        (counts.empty() ? "" : ", ") + std::string(member.name) + " " + text_of(&member.value);
  }
  rows.push_back({"records", counts});
  add_restore(rows, store->find("restored"));
}

/// "-": the store did not answer.
std::string count_text(const Value* count, bool is_exact) {
  const std::string text = text_of(count);
  return (is_exact || text == "-" ? "" : "at least ") + text;
}

void add_unsettled(Rows& rows, const Value& status) {
  const auto* const unknown = status.find("unknown");
  if (unknown != nullptr && std::holds_alternative<json::Object>(unknown->is)) {
    rows.push_back({"unknown", text_of(unknown->find("count")) + ", the oldest for " +
                                   text_of(unknown->find("oldest_seconds")) +
                                   " s; left to operators " +
                                   text_of(unknown->find("for_people"))});
  }
  const bool seen_all = text_of(status.find("seen_all")) == "yes";
  const bool seen_completed = text_of(status.find("seen_all_completed")) == "yes";
  rows.push_back(
      {"contested", count_text(status.find("contested"), seen_all && seen_completed) +
                        (seen_all && !seen_completed
                             ? "; not all completed records were read: idem keys list --contested"
                             : "")});
  rows.push_back({"leases overdue", count_text(status.find("leases_overdue"), seen_all)});
  if (const auto* const age = status.find("reap_oldest_due_seconds");
      age != nullptr && !std::holds_alternative<std::nullptr_t>(age->is)) {
    rows.push_back({"reaper behind by", text_of(age) + " s at most"});
  }
  rows.push_back({"outcomes not stored", text_of(status.find("unsettled_attempts"))});
}

void print_status(const Value& status) {
  Rows rows;
  rows.push_back({"version", text_of(status.find("version"))});
  if (text_of(status.find("draining")) == "yes") rows.push_back({"draining", "yes"});
  add_store(rows, status);
  for (const auto* name : {"upstream", "authorizer"}) {
    const auto* const one = status.find(name);
    const bool is_there = one != nullptr && std::holds_alternative<json::Object>(one->is);
    if (is_there) add_availability(rows, name, *one);
  }
  for (const auto& one : items_of(status.find("providers"))) {
    add_availability(rows, "provider " + text_of(one.find("name")), one);
  }
  add_unsettled(rows, status);
  for (const auto& one : items_of(status.find("outbox"))) {
    rows.push_back({"outbox to " + text_of(one.find("destination")),
                    text_of(one.find("waiting")) + " waiting, the oldest for " +
                        text_of(one.find("oldest_seconds")) + " s; dead letters " +
                        text_of(one.find("dead"))});
  }
  print_rows(rows);
  const auto& troubles = items_of(status.find("troubles"));
  std::printf("\n%s\n", troubles.empty() ? "all is well" : "needs an operator:");
  for (const auto& one : troubles) {
    std::printf("  %s: %s\n", text_of(one.find("code")).c_str(),
                text_of(one.find("detail")).c_str());
  }
}

/// Another server's answer has not all of these members.
bool is_status(const Value& answer) {
  const auto* const ok = answer.find("ok");
  const auto* const version = answer.find("version");
  const auto* const store = answer.find("store");
  const auto* const troubles = answer.find("troubles");
  return ok != nullptr && std::holds_alternative<bool>(ok->is) && version != nullptr &&
         std::holds_alternative<std::string>(version->is) && store != nullptr &&
         std::holds_alternative<json::Object>(store->is) && troubles != nullptr &&
         std::holds_alternative<json::Array>(troubles->is);
}

}  // namespace

StatusCommand::StatusCommand(const Command& program)
    : OperatorCommand(program, "status",
                      "Show how a running gateway or worker is; exit code 1: something is down or "
                      "needs an operator",
                      {.has_verbs = false, .decides = false}) {}

int StatusCommand::run() {
  const auto answer = ask("/v1/status", nullptr);
  if (!answer) return answer.error();
  if (answer->status != 200) return complain_about(*answer);
  const auto status = json::parse(answer->body);
  if (!status || !is_status(*status)) return complain(malformed_answer, failed);
  if (json()) {
    print_json(answer->body);
  } else {
    print_status(*status);
  }
  return text_of(status->find("ok")) == "yes" ? done : failed;
}

}  // namespace idem::cli
