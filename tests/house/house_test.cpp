#include "house/folders.hpp"
#include "house/sources.hpp"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

/// The rules of the house that a machine can check: who may include whom, how long a file may be,
/// and which traps and rules have a test.
namespace idem::test {
namespace {

std::string house_of(const fs::path& file) {
  const std::string path = fs::relative(file, root).generic_string();
  std::string best;
  for (const auto& [folder, unused] : allowed) {
    const bool fits = path == folder || path.starts_with(folder + "/");
    if (fits && folder.size() > best.size()) best = folder;
  }
  return best;
}

// The standard library's headers have no slash and no suffix; the C library's and the kernel's end
// in .h and are named here.
bool is_standard(const std::string& name) {
  static const std::set<std::string> system{
      "sys/socket.h",    "sys/uio.h",      "sys/file.h",    "sys/stat.h",    "sys/mman.h",
      "sys/statvfs.h",   "sys/resource.h", "sys/prctl.h",   "netinet/tcp.h", "unistd.h",
      "time.h",          "fcntl.h",        "poll.h",        "pthread.h",     "malloc.h",
      "netdb.h",         "pwd.h",          "grp.h",         "spawn.h",       "sys/wait.h",
      "arpa/inet.h",     "sys/statfs.h",   "sys/timex.h",   "sys/ioctl.h",   "sys/syscall.h",
      "sys/sysmacros.h", "sys/eventfd.h",  "sys/signalfd.h"};
  return system.contains(name) || name.find_first_of("/.") == std::string::npos;
}

TEST(House, includes_point_one_way) {
  const std::regex include(R"re(^\s*#\s*include\s*["<]([^">]+)[">])re");
  std::size_t seen = 0;
  for (const auto* folder : {"src", "include"}) {
    for (const auto& file : sources(folder)) {
      const std::string house = house_of(file);
      ASSERT_FALSE(house.empty()) << file << " lies in a folder that this test does not know";
      for (const auto& line : lines_of(file)) {
        std::smatch match;
        if (!std::regex_search(line, match, include) || is_standard(match[1])) continue;
        ++seen;
        const auto& prefixes = allowed.at(house);
        const bool fine = std::any_of(prefixes.begin(), prefixes.end(), [&](const auto& prefix) {
          return match[1].str().starts_with(prefix);
        });
        // Only the store's own folder includes a concrete store.
        bool concrete = false;
        for (const auto& [store, unused] : allowed) {
          // What several stores are made of.
          static const std::set<std::string> shared{"src/store/on_loop", "src/store/embedded",
                                                    "src/store/compare_and_set",
                                                    "src/store/sql_server"};
          if (shared.contains(store)) continue;
          const bool is_its_room =
              (house + "/").starts_with(store + "/") || (store + "/").starts_with(house + "/");
          concrete |= store.starts_with("src/store/") && !is_its_room &&
                      match[1].str().starts_with(store.substr(4) + "/");
        }
        EXPECT_TRUE(fine && !concrete) << file << " includes " << match[1];
      }
    }
  }
  EXPECT_GT(seen, 100U) << "the scan found too little to mean anything";
}

// A reader who knows where the code lies finds its tests. In `live`, a folder is named after one of
// src.
TEST(House, folders_of_tests_are_those_of_the_code) {
  std::set<std::string> folders;
  for (const auto& entry : fs::recursive_directory_iterator(root / "src")) {
    if (entry.is_directory()) folders.insert(fs::relative(entry.path(), root / "src"));
  }
  const auto names = [&](const std::string& name) {
    return std::ranges::any_of(folders, [&](const std::string& folder) {
      return folder == name || folder.ends_with("/" + name);
    });
  };
  std::size_t seen = 0;
  for (const std::string lane : {"unit", "live", "store_conformance"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / "tests" / lane)) {
      if (!entry.is_directory()) continue;
      ++seen;
      const std::string folder = fs::relative(entry.path(), root / "tests" / lane);
      EXPECT_TRUE(lane == "unit" ? folders.contains(folder) : names(folder)) << entry.path();
    }
  }
  EXPECT_GT(seen, 20U);
}

/// Headers that name a library which a service may not have: a service that wants one includes it.
TEST(House, no_header_brings_an_optional_one_with_it) {
  for (const auto* folder : {"src", "include"}) {
    for (const auto& file : sources(folder)) {
      if (file.generic_string().find("/adapters/") != std::string::npos) continue;
      for (const auto& line : lines_of(file)) {
        EXPECT_EQ(line.find("#include <idem/adapters/"), line.npos) << file;
        EXPECT_EQ(line.find("#include <idem/asio.hpp>"), line.npos) << file;
      }
    }
  }
}

TEST(House, the_library_page_shows_the_smallest_program_as_it_is) {
  const std::string page = read_file(root / "docs/library.md");
  const std::string code = read_file(root / "examples/embed/main.cpp");
  ASSERT_FALSE(code.empty());
  EXPECT_NE(page.find("```cpp\n" + code + "```"), page.npos);
  EXPECT_LE(std::ranges::count(code, '\n'), 60);
}

// Each block of code stands below a link to the file that it is a part of, line by line.
TEST(House, the_tutorial_shows_the_code_that_is_compiled) {
  const std::regex link(R"re(\]\(\.\./examples/tutorial/(step\d\.cpp)\))re");
  std::map<std::string, int> shown;
  std::string file;
  std::string block;
  bool in_block = false;
  for (const auto& line : lines_of(root / "docs/tutorial.md")) {
    std::smatch match;
    if (!in_block && std::regex_search(line, match, link)) file = match[1];
    if (in_block && line == "```") {
      const std::string code = "\n" + read_file(root / "examples/tutorial" / file);
      EXPECT_NE(code.find("\n" + block), code.npos) << "not in " << file << ":\n" << block;
      ++shown[file];
      in_block = false;
    } else if (in_block) {
      block += line + "\n";
    } else if (line == "```cpp") {
      in_block = true;
      block.clear();
    }
  }
  EXPECT_FALSE(in_block);
  for (const auto& step : sources("examples/tutorial")) {
    const std::string name = step.filename();
    if (!name.starts_with("step")) continue;
    EXPECT_GE(shown[name], 1) << name;
    EXPECT_LE(lines_of(step).size(), 90) << name;
  }
  EXPECT_EQ(shown.size(), 5);
}

// Two versions in one program would be linked without a word, and differ in what their types hold.
TEST(House, public_names_lie_in_the_namespace_of_the_version) {
  const std::string version = read_file(root / "include/idem/version.hpp");
  const auto number = [&](const std::string& part) {
    std::smatch match;
    const std::regex line("#define IDEM_VERSION_" + part + " (\\d+)\n");
    return std::regex_search(version, match, line) ? match[1].str() : std::string("none");
  };
  EXPECT_NE(version.find("#define IDEM_VERSION \"" + number("MAJOR") + "." + number("MINOR") + "." +
                         number("PATCH") + "\""),
            version.npos);
  const std::string in_version = "idem::inline v" + number("MAJOR") + "_" + number("MINOR");
  std::size_t seen = 0;
  for (const auto& file : sources("include/idem")) {
    const std::string name = file.filename();
    // Not installed, and without names in a namespace.
    if (name == "assert.hpp" || name == "crash_point.hpp" || name == "version.hpp") continue;
    for (const auto& line : lines_of(file)) {
      if (!line.starts_with("namespace idem")) continue;
      ++seen;
      EXPECT_TRUE(line.starts_with("namespace " + in_version)) << file << ": " << line;
    }
    EXPECT_EQ(read_file(file).find("#include <idem/assert.hpp>"), std::string::npos) << file;
    EXPECT_EQ(read_file(file).find("#include <idem/crash_point.hpp>"), std::string::npos) << file;
  }
  EXPECT_GT(seen, 20U);
}

TEST(House, files_stay_readable) {
  std::size_t seen = 0;
  for (const auto* folder : {"src", "include", "tests", "examples", "bench", "fuzz"}) {
    for (const auto& file : sources(folder)) {
      ++seen;
      const auto lines = lines_of(file);
      EXPECT_LE(lines.size(), 500U) << file;
      for (std::size_t i = 0; i < lines.size(); ++i) {
        EXPECT_LE(columns(lines[i]), 100U) << file << ':' << i + 1;
      }
    }
  }
  EXPECT_GT(seen, 60U);
}

/// What stands in the parentheses behind `from`, over the ends of lines.
std::string condition_from(const std::string& text, std::size_t from) {
  int depth = 0;
  for (std::size_t at = from; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return text.substr(from, at - from);
  }
  return {};
}

// There is one text of each, in a file that every start may apply again.
TEST(House, each_function_of_the_database_is_defined_once) {
  const std::regex definition(R"(^CREATE (OR REPLACE )?(FUNCTION|PROCEDURE) (idem[._]\w+))");
  std::map<std::string, std::string> where;
  for (const auto& schema : fs::directory_iterator(root / "schema")) {
    const fs::path& store = schema.path();
    if (!fs::exists(store / "functions")) continue;
    for (const auto& entry : fs::directory_iterator(store / "functions")) {
      const std::string file = entry.path().filename().string();
      for (const auto& line : lines_of(entry.path())) {
        std::smatch found;
        if (!std::regex_search(line, found, definition)) continue;
        EXPECT_TRUE(found[1].matched) << file << ": " << line << ": write CREATE OR REPLACE";
        const auto [at, is_new] = where.emplace(found[3], file);
        EXPECT_TRUE(is_new) << found[3] << " in " << at->second << " and " << file;
      }
    }
    for (const auto& entry : fs::directory_iterator(store / "tables")) {
      const std::string text = read_file(entry.path());
      EXPECT_FALSE(text.contains("FUNCTION idem") || text.contains("PROCEDURE idem"))
          << entry.path().filename() << ": functions belong into the folder of functions";
    }
  }
  EXPECT_GT(where.size(), 100U);
}

// GCC 12 drops the whole body of a coroutine that has one, without a message.
TEST(House, no_coroutine_awaits_in_a_condition) {
  const std::regex begins(R"re(\b(if|while|switch) \()re");
  std::size_t seen = 0;
  for (const auto* folder : {"src", "include", "tests", "examples"}) {
    for (const auto& file : sources(folder)) {
      const std::string text = read_file(file);
      for (std::sregex_iterator at(text.begin(), text.end(), begins), end; at != end; ++at) {
        ++seen;
        const auto open = static_cast<std::size_t>(at->position() + at->length()) - 1;
        const std::string condition = condition_from(text, open);
        EXPECT_EQ(condition.find("co_await"), std::string::npos) << file << ": " << condition;
      }
    }
  }
  EXPECT_GT(seen, 1'000U);
}

/// A row of docs/rules.md: the code, and the tests that it names.
struct Rule {
  std::string code;
  std::vector<std::string> tests;
};

std::vector<Rule> rules() {
  const std::regex row(R"re(\| ([TPSVR]\d\d) \|.*)re");
  const std::regex test(R"re(`(\w+)\.(\w+)` \((tests/[\w/]+\.cpp)\))re");
  std::vector<Rule> found;
  for (const auto& line : lines_of(root / "docs/rules.md")) {
    std::smatch code;
    if (!std::regex_match(line, code, row)) continue;
    Rule& rule = found.emplace_back(Rule{code[1], {}});
    for (std::sregex_iterator it(line.begin(), line.end(), test), end; it != end; ++it) {
      rule.tests.push_back((*it)[2].str() + " in " + (*it)[3].str());
    }
  }
  return found;
}

TEST(House, every_rule_has_its_tests_and_every_code_of_a_test_is_a_rule) {
  const std::regex name(R"re(TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\))re");
  const std::regex codes(R"re(((?:[TPSVR]\d\d_)+).*)re");
  const std::regex part(R"re([TPSVR]\d\d)re");
  std::set<std::string> tests;  // "NAME in FILE"
  std::map<std::string, std::string> used;
  for (const auto& file : sources("tests")) {
    const std::string text = read_file(file);
    for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) {
      const std::string test = (*it)[1].str() + " in " + fs::relative(file, root).string();
      tests.insert(test);
      std::smatch begins;
      if (!std::regex_match(test, begins, codes)) continue;
      const std::string names = begins[1];
      for (std::sregex_iterator n(names.begin(), names.end(), part); n != end; ++n) {
        used.emplace(n->str(), test);
      }
    }
  }
  std::set<std::string> ruled;
  for (const Rule& rule : rules()) {
    EXPECT_TRUE(ruled.insert(rule.code).second) << rule.code << " has two rows";
    EXPECT_FALSE(rule.tests.empty()) << rule.code << " has no test";
    EXPECT_TRUE(used.contains(rule.code)) << "no test's name begins with " << rule.code;
    for (const auto& test : rule.tests) {
      EXPECT_TRUE(tests.contains(test)) << rule.code << ": there is no " << test;
    }
  }
  EXPECT_GT(ruled.size(), 150U);
  for (const auto& [code, test] : used) {
    EXPECT_TRUE(ruled.contains(code)) << code << " of " << test << " is not in docs/rules.md";
  }
}

TEST(House, crash_points_are_not_reachable_in_the_shipped_binary) {
  const std::string armed = read_file(fs::path(IDEM_BIN_DIR) / "idem-crash");
  const std::string shipped = read_file(fs::path(IDEM_BIN_DIR) / "idem");
  ASSERT_GT(shipped.size(), 100'000U);
  EXPECT_NE(armed.find("IDEM_CRASH_AT"), std::string::npos);
  EXPECT_EQ(shipped.find("IDEM_CRASH_AT"), std::string::npos);
  EXPECT_EQ(shipped.find("IDEM_STOP_AT"), std::string::npos);
}

}  // namespace
}  // namespace idem::test
