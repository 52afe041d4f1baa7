#include "cli/commands/store_command.hpp"

#include "cli/commands.hpp"
#include "cli/commands/tables.hpp"
#include "json/value.hpp"

#include <cstdio>

namespace idem::cli {
namespace {

struct Counts {
  std::int64_t checked = 0;
  std::int64_t changed = 0;
  std::int64_t waiting = 0;
  std::vector<std::string> damaged;
};

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
      !add("waiting", counts.waiting) || next == nullptr) {
    return std::nullopt;
  }
  for (const auto& one : items_of(page->find("damaged"))) counts.damaged.push_back(text_of(&one));
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
  out.end_object();
  return out.take() + "\n";
}

}  // namespace

StoreCommand::StoreCommand(CLI::App& app)
    : OperatorCommand(app, "store", "Work on what lies in the store of a running gateway"),
      rekey_(declare("rekey",
                     "Bring every record under the newest of encryption.secret_files, while "
                     "requests are served; it may be ended and begun again")) {}

// Every page is a request of its own, so that an end of this process loses nothing.
int StoreCommand::run() {
  if (!rekey_->parsed()) return usage;
  Counts counts;
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
    std::fprintf(stderr, "%lld checked, %lld changed\n", static_cast<long long>(counts.checked),
                 static_cast<long long>(counts.changed));
  } while (!after.empty());
  if (json()) {
    const std::string text = counts_json(counts);
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    std::printf("checked %lld\nchanged %lld\nwaiting %lld\ndamaged %zu\n",
                static_cast<long long>(counts.checked), static_cast<long long>(counts.changed),
                static_cast<long long>(counts.waiting), counts.damaged.size());
    for (const auto& one : counts.damaged) std::printf("  %s\n", printable(one).c_str());
  }
  if (!counts.damaged.empty()) return failed;
  return counts.waiting == 0 ? done : refused;
}

}  // namespace idem::cli
