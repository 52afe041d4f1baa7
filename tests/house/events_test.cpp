#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "house/sources.hpp"

/// Each event of a log has its row on a page.
namespace idem::test {
namespace {

/// The events that a text writes by their names.
std::set<std::string> events_in(const std::string& text) {
  static const std::regex shapes[] = {
      // log(LogLevel::error, "event", ...), also with a condition between the two.
      std::regex(R"re(LogLevel::\w+,\s*(?:/\*[^*]*\*/\s*)?"([a-z_]+)")re"),
      std::regex(R"re(LogLevel::\w+,\s*[^;"]{0,60}\?\s*"([a-z_]+)")re"),
      std::regex(R"re(LogLevel::\w+,\s*[^;"]{0,60}\?\s*"[a-z_]+"\s*:\s*"([a-z_]+)")re"),
      // What an outage is called, and its end.
      std::regex(R"re(log_(?:failing|recovered|refusal)\(\s*"([a-z_]+)")re"),
      std::regex(R"re(\{"([a-z_]+_failed)", "[a-z_]+_recovered")re"),
      std::regex(R"re(\{"[a-z_]+_failed", "([a-z_]+_recovered)")re"),
      std::regex(R"re(\n    "([a-z]+(?:_[a-z]+)*)",(?=\n    "|\n\}))re"),  // of_process
  };
  std::set<std::string> found;
  for (const auto& shape : shapes) {
    for (std::sregex_iterator it(text.begin(), text.end(), shape), end; it != end; ++it) {
      found.insert((*it)[1]);
    }
  }
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
    const bool is_log = file.filename() == "process_log.cpp";
    for (const auto& event : events_in(read_file(file))) {
      const std::string code = "`" + event + "`";
      ++seen;
      const bool is_there = of_processes.find(code) != std::string::npos ||
                            (is_of_services && of_services.find(code) != std::string::npos);
      EXPECT_TRUE(is_there) << event << " of " << file << (is_log ? " (of_process)" : "");
    }
  }
  EXPECT_GT(seen, 100U);
}

}  // namespace
}  // namespace idem::test
