#include "house/references.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <regex>

/// ARCHITECTURE.md and AGENTS.md are short, and what they name is there.
namespace idem::test {
namespace {

const fs::path architecture = root / "ARCHITECTURE.md";

/// The lines from a heading to the next one of its rank.
std::vector<std::string> section(const fs::path& page, const std::string& heading) {
  std::vector<std::string> lines;
  bool is_inside = false;
  for (const auto& line : lines_of(page)) {
    if (line.starts_with("## ")) is_inside = line == heading;
    if (is_inside) lines.push_back(line);
  }
  return lines;
}

/// What stands between backticks.
std::vector<std::string> code_spans(const std::string& line) {
  std::vector<std::string> spans;
  std::size_t from = line.find('`');
  while (from != line.npos) {
    const std::size_t to = line.find('`', from + 1);
    if (to == line.npos) break;
    spans.push_back(line.substr(from + 1, to - from - 1));
    from = line.find('`', to + 1);
  }
  return spans;
}

/// The words of all sources: identifiers, and the parts of other names.
std::set<std::string> words_of_sources() {
  std::set<std::string> words;
  std::vector<fs::path> files = files_of_text();
  std::erase_if(files, [](const fs::path& file) { return file.extension() == ".md"; });
  for (const auto& file : files) {
    const std::string text = read_file(file);
    std::string word;
    for (const char c : text) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
        word += c;
      } else if (!word.empty()) {
        words.insert(std::exchange(word, {}));
      }
    }
  }
  return words;
}

TEST(HouseSpine, the_pages_for_contributors_are_short) {
  EXPECT_LE(lines_of(architecture).size(), 200U);
  const auto agents = lines_of(root / "AGENTS.md");
  EXPECT_FALSE(agents.empty());
  EXPECT_LE(agents.size(), 120U);
}

TEST(HouseSpine, the_reading_list_is_read_in_a_day) {
  std::set<fs::path> files;
  std::size_t lines = 0;
  for (const auto& line : section(architecture, "## Reading list")) {
    if (!line.starts_with("| ") || line.starts_with("| a request")) continue;
    const std::size_t second = line.find(" | ") + 3;
    for (const auto& name : code_spans(line.substr(second, line.find(" | ", second) - second))) {
      const fs::path in_src = root / "src" / name;
      const fs::path file = fs::exists(in_src) ? in_src : root / name;
      ASSERT_TRUE(fs::is_regular_file(file)) << name;
      EXPECT_TRUE(files.insert(file).second) << name << " stands there twice";
      lines += lines_of(file).size();
    }
  }
  EXPECT_GE(files.size(), 25U);
  EXPECT_LE(files.size(), 40U);
  EXPECT_LE(lines, 6'000U) << "shorten the list, or put a shorter file in the place of a long one";
}

/// Also functions, which its tables give as the place where something happens.
TEST(HouseSpine, each_name_of_the_architecture_page_is_one_of_the_sources) {
  const PathNames there;
  const std::set<std::string> words = words_of_sources();
  std::size_t seen = 0;
  for (const auto& line : lines_of(architecture)) {
    for (const std::string& span : code_spans(line)) {
      if (span.find(' ') != span.npos) continue;  // A command.
      ++seen;
      if (there.has(span, root / "src" / "any") || there.has(span, architecture)) continue;
      std::string word;
      for (const char c : span + " ") {
        if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
          word += c;
        } else if (!word.empty()) {
          EXPECT_TRUE(words.contains(word) || word.ends_with("NAME")) << span << " in: " << line;
          word.clear();
        }
      }
    }
  }
  EXPECT_GT(seen, 200U);
}

/// `ps -L` shows these names.
TEST(HouseSpine, the_table_of_threads_has_each_thread_that_has_a_name) {
  const std::regex named(
      R"re((?:setname_np\([^"]*|\brun\(|thread_name = |Offload \w+\{|threads_\(|ing_\.emplace\())re"
      R"re("(idem-[a-z-]+)")re");
  std::set<std::string> started;
  for (const auto& file : sources("src")) {
    const std::string text = read_file(file);
    if (text.find("\"idem-") == text.npos) continue;
    for (std::sregex_iterator it(text.begin(), text.end(), named), end; it != end; ++it) {
      started.insert((*it)[1]);
    }
  }
  EXPECT_GE(started.size(), 15U);
  std::set<std::string> listed;
  for (const auto& line : section(architecture, "## Threads")) {
    for (const auto& span : code_spans(line)) {
      if (span.starts_with("idem-")) listed.insert(span);
    }
  }
  EXPECT_EQ(started, listed);
}

}  // namespace
}  // namespace idem::test
