#include "cli/commands/store_command.hpp"

#include "cli/commands/tables.hpp"
#include "cli/exit_code.hpp"
#include "cli/terminal/progress.hpp"
#include "json/writer.hpp"

#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <thread>

namespace idem::cli {
namespace {

struct Counts {
  std::int64_t checked = 0;
  std::int64_t changed = 0;
  std::int64_t waiting = 0;
  std::vector<std::string> damaged;
  std::int64_t keys_checked = 0;
  std::int64_t keys_changed = 0;
  std::vector<std::string> damaged_keys;
};

std::int64_t number_of(const json::Value& object, const char* name) {
  const auto* const member = object.find(name);
  const auto* const number = member ? std::get_if<std::int64_t>(&member->is) : nullptr;
  return number != nullptr ? *number : 0;
}

/// Adds a page's counts; the next page's beginning, or empty at the end. None: it is no such page.
std::optional<std::string> add_page(const std::string& body, Counts& counts) {
  const auto page = json::parse(body);
  if (!page) return std::nullopt;
  const auto add = [&](const char* name, std::int64_t& to) {
    const auto* const member = page->find(name);
    const auto* const number = member ? std::get_if<std::int64_t>(&member->is) : nullptr;
    if (number != nullptr) to += *number;
    return number != nullptr;
  };
  const auto* const next = page->find("next");
  if (!add("checked", counts.checked) || !add("changed", counts.changed) ||
      !add("waiting", counts.waiting) || !add("keys_checked", counts.keys_checked) ||
      !add("keys_changed", counts.keys_changed) || next == nullptr) {
    return std::nullopt;
  }
  for (const auto& one : items_of(page->find("damaged"))) counts.damaged.push_back(text_of(&one));
  for (const auto& one : items_of(page->find("damaged_keys"))) {
    counts.damaged_keys.push_back(text_of(&one));
  }
  const auto* const text = std::get_if<std::string>(&next->is);
  return text != nullptr ? *text : std::string();
}

std::string counts_json(const Counts& counts) {
  json::Writer out;
  out.begin_object();
  out.member("checked", counts.checked);
  out.member("changed", counts.changed);
  out.member("waiting", counts.waiting);
  out.name("damaged");
  out.begin_array();
  for (const auto& one : counts.damaged) out.text(one);
  out.end_array();
  out.member("keys_checked", counts.keys_checked);
  out.member("keys_changed", counts.keys_changed);
  out.name("damaged_keys");
  out.begin_array();
  for (const auto& one : counts.damaged_keys) out.text(one);
  out.end_array();
  out.end_object();
  return out.take() + "\n";
}

void print_counts(const Counts& counts) {
  std::printf("checked %lld\nchanged %lld\nwaiting %lld\ndamaged %zu\n",
              static_cast<long long>(counts.checked), static_cast<long long>(counts.changed),
              static_cast<long long>(counts.waiting), counts.damaged.size());
  for (const auto& one : counts.damaged) std::printf("  %s\n", printable(one).c_str());
  if (counts.keys_checked == 0) return;
  std::printf(
      "keys of scopes checked %lld\nkeys of scopes changed %lld\nkeys of scopes damaged %zu\n",
      static_cast<long long>(counts.keys_checked), static_cast<long long>(counts.keys_changed),
      counts.damaged_keys.size());
  for (const auto& one : counts.damaged_keys) std::printf("  %s\n", printable(one).c_str());
}

}  // namespace

StoreCommand::StoreCommand(const Command& program)
    : OperatorCommand(
          program, "store",
          "Copy a store to another; back up, check, restore and recover an embedded store; work "
          "on what lies in that of a running gateway"),
      rekey_(declare("rekey",
                     "Bring every record under the newest of encryption.secret_files, while "
                     "requests are served; it may be ended and begun again")),
      shred_(declare("shred",
                     "Delete the keys of a scope, so that all answers and requests that it has in "
                     "the store are unreadable for good; with encryption.key_per_scope")),
      // Braces: help shows them in this order, and arguments in parentheses have none.
      files_{declare("restore", StoreFileVerbs::restore_text),
             declare("recover", StoreFileVerbs::recover_text),
             declare("reindex", StoreFileVerbs::reindex_text),
             declare("check", StoreFileVerbs::check_text),
             declare("backup", StoreFileVerbs::backup_text)},
      copy_(declare("copy", StoreCopyVerb::text)) {
  shred_.add_option("--scope", scope_, "the scope, as idem keys list shows it").required();
  shred_.add_option("--reason", reason_, "why, for the audit").required();
  shred_.add_flag("--yes", yes_, "do it without asking");
}

int StoreCommand::run() {
  if (files_.parsed()) return files_.run(json());
  if (copy_.parsed()) return copy_.run(json());
  if (shred_.parsed()) return shred();
  return rekey_.parsed() ? rekey() : usage;
}

// ---- shred ----

bool StoreCommand::confirms() const {
  std::fprintf(stderr,
               "Afterwards no process can open a stored answer or a stored request of this scope. "
               "Type the scope: ");
  std::string typed;
  return std::getline(std::cin, typed) && typed == scope_;
}

std::expected<json::Value, int> StoreCommand::shred_step(std::optional<std::int64_t> key) {
  json::Writer out;
  out.begin_object();
  out.member("scope", scope_);
  out.member("reason", reason_);
  if (key) out.member("key", *key);
  out.end_object();
  const std::string body = out.take();
  const auto answer = ask("/v1/store/shred", &body);
  if (!answer) return std::unexpected(answer.error());
  if (answer->status != 200) return std::unexpected(complain_about(*answer));
  auto step = json::parse(answer->body);
  if (!step || number_of(*step, "key") == 0) {
    return std::unexpected(complain(malformed_answer, failed));
  }
  if (json() && text_of(step->find("state")) != "waiting") print_json(answer->body);
  return std::move(*step);
}

// If this process ends in between, nothing is shredded yet, and the same command begins anew.
int StoreCommand::shred() {
  if (!yes_ && ::isatty(STDIN_FILENO) == 0) {
    return complain("give --yes to do this without a terminal", usage);
  }
  if (!yes_ && !confirms()) return complain("nothing was done", failed);
  auto step = shred_step(std::nullopt);
  while (step && text_of(step->find("state")) == "waiting") {
    const std::int64_t key = number_of(*step, "key");
    const auto wait = std::chrono::milliseconds(number_of(*step, "wait_ms") + 1);
    std::fprintf(stderr,
                 "new answers are under key %lld; the keys before it are deleted in %lld ms\n",
                 static_cast<long long>(key), static_cast<long long>(wait.count()));
    std::this_thread::sleep_for(wait);
    step = shred_step(key);
  }
  if (!step) return step.error();
  if (!json()) {
    std::printf("shredded %s\ndeleted keys %lld\n", printable(scope_).c_str(),
                static_cast<long long>(number_of(*step, "deleted")));
  }
  return done;
}

// ---- rekey ----

// Every page is a request of its own, so that an end of this process loses nothing.
int StoreCommand::rekey() {
  Counts counts;
  Progress progress("idem store: ", "begins", Progress::Elsewhere::lines);
  std::string after;
  do {
    json::Writer out;
    out.begin_object();
    if (!after.empty()) out.member("after", after);
    out.end_object();
    const std::string body = out.take();
    const auto answer = ask("/v1/store/rekey", &body);
    if (!answer) return answer.error();
    if (answer->status != 200) return complain_about(*answer);
    const auto next = add_page(answer->body, counts);
    if (!next) return complain(malformed_answer, failed);
    after = *next;
    progress.show(
        std::to_string(counts.checked) + " checked, " + std::to_string(counts.changed) + " changed",
        static_cast<std::uint64_t>(counts.checked));
  } while (!after.empty());
  if (json()) {
    const std::string text = counts_json(counts);
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    print_counts(counts);
  }
  if (!counts.damaged_keys.empty()) return failed;
  if (!counts.damaged.empty()) return failed;
  return counts.waiting == 0 ? done : refused;
}

}  // namespace idem::cli
