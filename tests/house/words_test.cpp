#include "house/sources.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <set>

/// Private words that once stood where the field has a term. docs/protocol.md §1 is the glossary.
namespace idem::test {
namespace {

const std::set<std::string> refused{"told",     "untold",   "hear",     "hears",  "heard",
                                    "desk",     "lookout",  "spared",   "errand", "errands",
                                    "somebody", "distrust", "standing", "saying", "teller",
                                    "unfit",    "walled",   "whoever"};

/// Former names whose parts are words that the project uses.
const std::vector<std::string> refused_names{"lease_looks",     "expiry_looks", "quiet_since",
                                             "may_stand_alone", "SayingRule",   "OwnRows",
                                             "own_rows",        "OwnStatement", "run_own"};

/// Files of an earlier version of the schema, and the tests that make one.
bool has_former_names(const fs::path& file) {
  const std::string name = file.filename();
  return name == "words_test.cpp" || name == "upgrade_test.cpp" || name == "0001_baseline.sql" ||
         name.ends_with("_names.sql");
}

/// Pages, programs and build files of the top folder.
std::vector<fs::path> top_files() {
  std::vector<fs::path> files;
  for (const auto* name : {"README.md", "AGENTS.md", "ARCHITECTURE.md", "CONTRIBUTING.md",
                           "CHANGELOG.md", "run", "test", "package", ".ci/run", "fuzz/run",
                           "CMakeLists.txt", "docs/Doxyfile", "tests/install/run"}) {
    files.push_back(root / name);
  }
  for (const auto* folder : {"bench", "scripts", "cmake", "tests/servers"}) {
    for (const auto& entry : fs::directory_iterator(root / folder)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  return files;
}

/// The words of a line, in lower case; an identifier's parts are words of their own.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto c = static_cast<unsigned char>(line[i]);
    const bool begins = std::isupper(c) != 0 &&
                        (i == 0 || std::islower(static_cast<unsigned char>(line[i - 1])) != 0);
    if (begins || std::isalpha(c) == 0) words.emplace_back();
    if (std::isalpha(c) != 0) words.back() += static_cast<char>(std::tolower(c));
  }
  return words;
}

TEST(HouseWords, are_split_at_underscores_and_capitals) {
  const std::vector<std::string> words = words_of("is_told_ lastHeard: 7Desk");
  const std::set<std::string> found(words.begin(), words.end());
  for (const auto* word : {"is", "told", "last", "heard", "desk"})
    EXPECT_TRUE(found.contains(word));
}

TEST(HouseWords, are_those_of_the_field) {
  std::vector<fs::path> files = top_files();
  for (const auto* folder :
       {"src", "include", "schema", "docs", "examples", "tests", "fuzz", "deploy", "console/src"}) {
    const auto found = files_below(folder, {".cpp", ".hpp", ".sql", ".lua", ".md", ".py", ".go",
                                            ".js", ".mjs", ".ts", ".tsx", ".yml", ".yaml"});
    files.insert(files.end(), found.begin(), found.end());
  }
  for (const auto& file : files) {
    if (has_former_names(file) || file.string().contains("/node_modules/")) continue;
    const auto lines = lines_of(file);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      for (const auto& word : words_of(lines[i])) {
        EXPECT_FALSE(refused.contains(word)) << file.string() << ':' << i + 1 << ": " << word;
      }
      for (const auto& name : refused_names) {
        EXPECT_FALSE(lines[i].contains(name)) << file.string() << ':' << i + 1 << ": " << name;
      }
    }
  }
  EXPECT_GT(files.size(), 500U);
}

}  // namespace
}  // namespace idem::test
