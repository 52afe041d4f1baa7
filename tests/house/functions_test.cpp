#include "house/sources.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <regex>

/// How long functions may be, in C++ and in SQL, and how long a file of SQL.
namespace idem::test {
namespace {

constexpr std::size_t function_lines_max = 70;
constexpr std::size_t sql_file_lines_max = 500;

struct Function {
  std::string head;
  std::size_t line = 0;
  std::size_t lines = 0;
};

/// Finds the functions of a C++ file by their braces; those within functions belong to them.
class FunctionScanner {
 public:
  explicit FunctionScanner(std::string text) : text_(std::move(text)) {}

  std::vector<Function> functions() {
    while (at_ < text_.size()) step();
    return std::move(found_);
  }

 private:
  void step() {
    if (starts("//")) return skip_to("\n");
    if (starts("/*")) return skip_behind("*/");
    if (starts("R\"")) return skip_raw();
    const char c = text_[at_];
    const bool separates_digits =
        at_ > 0 && std::isalnum(static_cast<unsigned char>(text_[at_ - 1]));
    if (c == '"' || (c == '\'' && !separates_digits)) return skip_quoted(c);
    if (c == '#' && head_.empty()) return skip_to("\n");
    if (c == '\n') ++line_;
    if (c == '{') {
      open();
    } else if (c == '}') {
      close();
    } else if (depth_ == 0) {
      read_head(c);
    }
    ++at_;
  }

  void read_head(char c) {
    if (c == '(') ++parentheses_;
    if (c == ')') --parentheses_;
    if (c == ';' && parentheses_ == 0) return head_.clear();
    const bool is_space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (head_.empty() && is_space) return;
    if (head_.empty()) head_line_ = line_;
    head_ += is_space ? ' ' : c;
  }

  void open() {
    if (depth_ > 0 || is_function()) {
      ++depth_;
    } else {
      head_.clear();
    }
  }

  void close() {
    if (depth_ > 0 && --depth_ == 0) {
      found_.push_back({head_, head_line_, line_ - head_line_ + 1});
    }
    if (depth_ == 0) head_.clear();
  }

  bool is_function() const {
    static const std::regex other("(inline )?(namespace|struct|class|enum|union|extern)\\b.*");
    static const std::regex behind("[\\w:<>&*, \\-\\[\\]]*");
    const auto last = head_.rfind(')');
    return parentheses_ == 0 && last != std::string::npos && !std::regex_match(head_, other) &&
           std::regex_match(head_.substr(last + 1), behind);
  }

  bool starts(std::string_view with) const { return text_.compare(at_, with.size(), with) == 0; }
  void move_to(std::size_t end) {
    end = std::min(end, text_.size());
    line_ += static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                 text_.begin() + static_cast<std::ptrdiff_t>(end),
                                                 '\n'));
    at_ = end;
  }
  void skip_to(std::string_view end) { move_to(text_.find(end, at_)); }
  void skip_behind(std::string_view end) {
    const auto found = text_.find(end, at_);
    move_to(found == std::string::npos ? found : found + end.size());
  }
  void skip_raw() {
    const auto open = text_.find('(', at_);
    skip_behind(")" + text_.substr(at_ + 2, open - at_ - 2) + "\"");
  }
  void skip_quoted(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    move_to(end + 1);
  }

  std::string text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t depth_ = 0;  // of braces in a function
  int parentheses_ = 0;    // of the head
  std::string head_;
  std::size_t head_line_ = 0;
  std::vector<Function> found_;
};

TEST(HouseFunctions, the_scanner_finds_what_it_is_to_find) {
  const std::string text =
      "namespace a {\nstruct B {\n  int c() const {\n    if (x) { y('{', \"}\", R\"(})\"); }\n"
      "    return 1'000; // }\n  }\n};\nB::B(int d) : e_{d}, f_(d) {\n}\n"
      "inline const std::vector<int> table{\n1,\n2};\n}\n";
  const auto found = FunctionScanner(text).functions();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].line, 3U);
  EXPECT_EQ(found[0].lines, 4U);
  EXPECT_EQ(found[2].line, 8U);
  EXPECT_EQ(found[2].lines, 2U);
}

TEST(HouseFunctions, of_cpp_fit_a_page) {
  std::size_t seen = 0;
  for (const auto* folder : {"src", "include", "tests", "examples", "bench", "fuzz"}) {
    for (const auto& file : sources(folder)) {
      for (const auto& function : FunctionScanner(read_file(file)).functions()) {
        ++seen;
        EXPECT_LE(function.lines, function_lines_max)
            << file << ':' << function.line << ": " << function.head;
      }
    }
  }
  EXPECT_GT(seen, 5'000U);
}

TEST(HouseFunctions, of_sql_fit_a_page) {
  const std::regex begins(R"(CREATE OR REPLACE (FUNCTION|PROCEDURE) .*)");
  // What may stand behind a function: the next statement, or the comment of the next function.
  const std::regex behind(R"((CREATE|COMMENT|REVOKE|GRANT|ALTER|DO|--).*)");
  std::size_t seen = 0;
  for (const auto& file : files_below("schema", {".sql"})) {
    const auto lines = lines_of(file);
    EXPECT_LE(lines.size(), sql_file_lines_max) << file;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!std::regex_match(lines[i], begins)) continue;
      ++seen;
      std::size_t end = i + 1;
      while (end < lines.size() && !std::regex_match(lines[end], behind)) ++end;
      while (lines[end - 1].empty()) --end;
      EXPECT_LE(end - i, function_lines_max) << file << ':' << i + 1 << ": " << lines[i];
    }
  }
  EXPECT_GT(seen, 100U);
}

}  // namespace
}  // namespace idem::test
