#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "house/sources.hpp"

/// Each event of a log has its row on a page.
namespace idem::test {
namespace {

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz_";

/// The literals in `text` that could be events: small letters between quotes.
void add_names(std::string_view text, std::set<std::string>& found) {
  for (auto open = text.find('"'); open != text.npos;) {
    const auto close = text.find('"', open + 1);
    if (close == text.npos) return;
    const auto name = text.substr(open + 1, close - open - 1);
    if (!name.empty() && name.find_first_not_of(letters) == name.npos) found.emplace(name);
    open = text.find('"', close + 1);
  }
}

/// The events that a text writes by their names: what follows a level or the word of an outage, in
/// front of the fields; and the two ends of an outage.
std::set<std::string> events_in(std::string_view text) {
  std::set<std::string> found;
  for (const std::string_view mark :
       {"LogLevel::", "log_failing(", "log_recovered(", "log_refusal("}) {
    for (auto at = text.find(mark); at != text.npos; at = text.find(mark, at + 1)) {
      if (text.substr(0, at).ends_with("case ")) continue;
      const auto rest = text.substr(at + mark.size(), 200);
      add_names(rest.substr(0, rest.find_first_of("{(;")), found);
    }
  }
  for (auto at = text.find("_recovered\""); at != text.npos;
       at = text.find("_recovered\"", at + 1)) {
    const auto open = text.rfind("{\"", at);
    if (open == text.npos) continue;
    const auto both = text.substr(open, at + 11 - open);
    if (both.find("_failed\", \"") != both.npos) add_names(both, found);
  }
  return found;
}

/// The events of the process's own room in the log.
std::set<std::string> events_of_process() {
  const std::string text = read_file(root / "src/cli/log/process_log.cpp");
  const auto begin = text.find("of_process[] = {");
  std::set<std::string> found;
  add_names(std::string_view(text).substr(begin, text.find("};", begin) - begin), found);
  return found;
}

bool is_in_a_folder_of(const fs::path& file, std::initializer_list<std::string_view> folders) {
  const std::string name = fs::relative(file, root).generic_string();
  return std::ranges::any_of(folders, [&](auto folder) { return name.starts_with(folder); });
}

TEST(HouseEvents, the_scanner_finds_what_it_is_to_find) {
  const auto found = events_in(R"(
      log_(LogLevel::info, "one", {});
      log(is_bad ? LogLevel::error : LogLevel::warning, "two", {});
      log_(LogLevel::warning, signal == SIGHUP ? "three" : "four", {});
      log_failing("five", why); Failures f{{"six_failed", "six_recovered"}};)");
  EXPECT_EQ(found, (std::set<std::string>{"five", "four", "one", "six_failed", "six_recovered",
                                          "three", "two"}));
}

TEST(HouseEvents, R31_each_has_its_row_on_a_page) {
  const std::string of_processes = read_file(root / "docs/operations.md");
  const std::string of_services = read_file(root / "docs/library.md");
  std::size_t seen = 0;
  for (const auto& file : sources("src")) {
    // They have no log of a process: `idem check` is a command, and metrics count reasons.
    if (is_in_a_folder_of(file, {"src/check/", "src/cli/check/", "src/metrics/"})) continue;
    const bool is_of_services = is_in_a_folder_of(file, {"src/library/"});
    for (const auto& event : events_in(read_file(file))) {
      const std::string code = "`" + event + "`";
      ++seen;
      const bool is_there = of_processes.find(code) != std::string::npos ||
                            (is_of_services && of_services.find(code) != std::string::npos);
      EXPECT_TRUE(is_there) << event << " of " << file;
    }
  }
  for (const auto& event : events_of_process()) {
    EXPECT_NE(of_processes.find("`" + event + "`"), std::string::npos) << event;
  }
  EXPECT_GT(seen, 100U);
}

}  // namespace
}  // namespace idem::test
