#include "house/references.hpp"

#include <gtest/gtest.h>

#include <map>
#include <regex>

/// A reader who follows a name finds what it names: a file, a heading, a section, a function.
namespace idem::test {
namespace {

/// Names of files that are not the repository's: a build makes them, or the reader of a page,
/// or they are examples of a test.
const std::set<std::string> names_of_others{"Node.js", "console_files.cpp",
                                            "RUNBOOKS/operations.md", "a.cpp", "b.hpp"};

bool has_checked_extension(const std::string& name) {
  static const std::set<std::string> checked{".cpp", ".hpp", ".sql", ".lua", ".md", ".cmake",
                                             ".mjs", ".tsx", ".ts",  ".py",  ".go"};
  return checked.contains(fs::path(name).extension());
}

bool begins_in_a_folder_of_ours(const std::string& name) {
  static const std::set<std::string> folders{"src",     "include", "schema",   "tests",
                                             "fuzz",    "bench",   "examples", "docs",
                                             "scripts", "cmake",   "deploy",   "packaging"};
  const std::size_t slash = name.find('/');
  return slash != name.npos && folders.contains(name.substr(0, slash));
}

/// `schema/NAME`, `NNNN_*.sql`: a recipe's reader puts a name there.
bool has_a_blank(const std::string& name) {
  static const std::regex blank(R"re((^|[/_.])(NAME|NNNN|NN|STORE|FOLDER|TARGET)([/_.]|$))re");
  return std::regex_search(name, blank);
}

TEST(HouseReferences, names_are_found_in_a_text) {
  const std::vector<std::string> names = path_names(
      "(a/b.cpp:3, `c.*`) https://d/e.md $F/g.md /h/i.md. See j.md#k-l, `m/{n}.hpp` and o/p/.");
  EXPECT_EQ(names, (std::vector<std::string>{"a/b.cpp", "c.*", "j.md#k-l", "o/p"}));
}

TEST(HouseReferences, every_file_that_a_comment_or_a_page_names_is_there) {
  const PathNames there;
  std::size_t seen = 0;
  for (const auto& file : files_of_text()) {
    for (const auto& line : prose_of(file)) {
      for (std::string name : path_names(line.text)) {
        name = name.substr(0, name.find('#'));
        if (!has_checked_extension(name) && !begins_in_a_folder_of_ours(name)) continue;
        if (names_of_others.contains(name) || has_a_blank(name)) continue;
        ++seen;
        EXPECT_TRUE(there.has(name, file))
            << file.string() << ':' << line.number << ": there is no " << name;
      }
    }
  }
  EXPECT_GT(seen, 1'000U);
}

/// What a reader of the repository may open: links between its pages.
TEST(HouseReferences, every_link_between_pages_leads_somewhere) {
  const std::regex link(R"re(\]\(([^)\s]+)\))re");
  std::size_t seen = 0;
  for (const fs::path& page : files_of_text()) {
    if (page.extension() != ".md") continue;
    const std::string text = read_file(page);
    for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
      const std::string to = (*it)[1];
      if (to.find("://") != to.npos || to.starts_with("mailto:")) continue;
      ++seen;
      const std::string file = to.substr(0, to.find('#'));
      const fs::path target = file.empty() ? page : page.parent_path() / file;
      EXPECT_TRUE(fs::exists(target)) << page << ": " << to;
      if (to.find('#') == to.npos || target.extension() != ".md" || !fs::exists(target)) continue;
      EXPECT_TRUE(anchors_of(target).contains(to.substr(to.find('#') + 1))) << page << ": " << to;
    }
  }
  EXPECT_GT(seen, 50U);
}

/// Also in messages, alerts and the console, which send their readers to a heading.
TEST(HouseReferences, every_heading_that_a_source_names_is_there) {
  static const std::regex heading(R"re(([\w./-]+\.md)#([\w-]+))re");
  const PathNames there;
  std::map<fs::path, std::set<std::string>> anchors;
  std::size_t seen = 0;
  for (const auto& file : files_of_text()) {
    if (file.extension() == ".md" || file.filename() == "references_test.cpp") continue;
    std::size_t number = 0;
    for (const auto& line : lines_of(file)) {
      ++number;
      if (line.find(".md#") == line.npos) continue;
      for (std::sregex_iterator it(line.begin(), line.end(), heading), end; it != end; ++it) {
        ++seen;
        const fs::path page = there.page((*it)[1], file);
        ASSERT_FALSE(page.empty()) << file << ':' << number << ": " << (*it)[1];
        if (!anchors.contains(page)) anchors[page] = anchors_of(page);
        EXPECT_TRUE(anchors[page].contains((*it)[2])) << file << ':' << number << ": " << (*it)[0];
      }
    }
  }
  EXPECT_GT(seen, 30U);
}

/// A section of the protocol that is cited by its page: `protocol.md §N`, `protocol.md §N–§M`.
TEST(HouseReferences, every_section_of_the_protocol_that_is_cited_is_there) {
  static const std::regex cited(R"re(protocol\.md §(\d+)(?:–§?(\d+))?)re");
  std::set<std::string> sections;
  for (const auto& line : prose_of(root / "docs/protocol.md")) {
    if (!line.text.starts_with("## ")) continue;
    sections.insert(line.text.substr(3, line.text.find('.') - 3));
  }
  std::size_t seen = 0;
  for (const auto& file : files_of_text()) {
    if (file.filename() == "references_test.cpp") continue;
    const std::string text = read_file(file);
    if (text.find("protocol.md §") == text.npos) continue;
    for (std::sregex_iterator it(text.begin(), text.end(), cited), end; it != end; ++it) {
      ++seen;
      EXPECT_TRUE(sections.contains((*it)[1])) << file << ": " << (*it)[0];
      if ((*it)[2].matched) {
        EXPECT_TRUE(sections.contains((*it)[2])) << file << ": " << (*it)[0];
      }
    }
  }
  EXPECT_GT(seen, 20U);
}

/// Those of PostgreSQL and MariaDB, and those of CMake, which begin like them: in pages and
/// comments, where the name has its parenthesis.
TEST(HouseReferences, every_function_of_the_database_that_is_named_is_defined) {
  static const std::regex definition(R"re((?:FUNCTION|PROCEDURE|TABLE|TYPE|VIEW) (idem[._]\w+))re");
  static const std::regex of_cmake(R"re((?:function|macro)\((idem_\w+))re");
  static const std::regex named(R"re((^|[^\w./:-])(idem[._][a-z_]\w*)\()re");
  std::set<std::string> defined;
  const auto define = [&](const fs::path& file, const std::regex& by) {
    const std::string text = read_file(file);
    for (std::sregex_iterator it(text.begin(), text.end(), by), end; it != end; ++it) {
      defined.insert((*it)[1]);
    }
  };
  for (const auto& file : files_below("schema", {".sql"})) define(file, definition);
  for (const auto& file : files_below("cmake", {".cmake"})) define(file, of_cmake);
  EXPECT_GT(defined.size(), 100U);
  std::size_t seen = 0;
  for (const auto& file : files_of_text()) {
    const std::string extension = file.extension();
    const bool is_checked = extension == ".md" || extension == ".cpp" || extension == ".hpp";
    if (!is_checked && extension != ".sql") continue;
    for (const auto& line : prose_of(file)) {
      if (line.text.find("idem") == line.text.npos) continue;
      for (std::sregex_iterator it(line.text.begin(), line.text.end(), named), end; it != end;
           ++it) {
        const std::string name = (*it)[2];
        if (name.starts_with("idem.yaml")) continue;
        ++seen;
        EXPECT_TRUE(defined.contains(name))
            << file.string() << ':' << line.number << ": nothing defines " << name;
      }
    }
  }
  EXPECT_GT(seen, 50U);
}

}  // namespace
}  // namespace idem::test
