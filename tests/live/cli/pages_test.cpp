#include "support/external_data.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>

/// The commands of the pages for a new user run as they stand, one block after the other.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

const fs::path source_root = IDEM_SOURCE_DIR;

/// The addresses that the page chooses at its beginning are free ones here; all else is as it is.
std::string script_of(const std::string& page, const fs::path& folder) {
  std::string script =
      "set -euo pipefail\n"
      "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
      "trap 'exit 3' TERM\n"
      "free() { python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0));"
      " print(s.getsockname()[1])'; }\n"
      "export PATH=" +
      std::string(IDEM_BIN_DIR) + ":$PATH\ncd " + folder.string() + "\n";
  const std::string mark = "```sh\n";
  for (auto at = page.find(mark); at != page.npos; at = page.find(mark, at)) {
    at += mark.size();
    script += page.substr(at, page.find("```", at) - at);
  }
  const std::regex address("(API|LISTEN|ADMIN)=127\\.0\\.0\\.1:\\d+");
  EXPECT_EQ(std::distance(std::sregex_iterator(script.begin(), script.end(), address),
                          std::sregex_iterator()),
            3);
  return std::regex_replace(script, address, "$1=127.0.0.1:$$(free)");
}

class Pages : public testing::Test {
 protected:
  /// Each of `parts` is in the commands' output, one behind the other.
  void expect_prints(const char* page, const std::vector<std::string>& parts) {
    const fs::path script = dir_.path() / "script.sh";
    fs::create_directory(dir_.path() / "empty");
    std::ofstream(script) << script_of(read_file(source_root / page), dir_.path() / "empty");
    Process shell({.program = "/usr/bin/timeout",
                   .arguments = {"-k", "5", "100", "/bin/bash", script.string()}});
    EXPECT_EQ(shell.exit_code(std::chrono::seconds(110)), 0) << shell.output();
    const std::string output = shell.output();
    std::size_t at = 0;
    for (const auto& part : parts) {
      const auto found = output.find(part, at);
      ASSERT_NE(found, output.npos) << page << " does not print " << part << "\n" << output;
      at = found + part.size();
    }
  }

  TempDir dir_;
};

TEST_F(Pages, the_readme_protects_an_api) {
  expect_prints("README.md",
                {"201", "pay_1", "201", "Idempotent-Replayed: true", "pay_1", "completed"});
}

TEST_F(Pages, getting_started_shows_each_answer) {
  expect_prints("docs/getting-started.md",
                {"ok", "store_opened", "pay_1", "Idempotent-Replayed: true", "pay_1", "422",
                 "key_reused", "409", "in_progress", "201", "pay_2", "502", "outcome_unknown",
                 "409", "outcome_unknown", "exit code 1", "201", "pay_3", "reloaded"});
}

}  // namespace
}  // namespace idem::test
