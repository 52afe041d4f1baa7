#include "cli/command_line/command.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

/// The class by which commands declare their options: what the parser behind it is asked for.
namespace idem::cli {
namespace {

class CommandLines : public testing::Test {
 protected:
  CommandLines() {
    line_.require_command();
    line_.set_notes("of the program");
    list_.take_options_of_parent();
    keys_.add_option("--url", url_, "where").variable("IDEM_TEST_URL").show_default();
    list_.add_option("--limit", limit_, "how many").between(1, 9);
    list_.add_option("--state", state_, "which").one_of({"open", "closed"});
    list_.add_option("--only", only_, "some").separated_by(',');
    list_.add_option("--lease", "how long").once().show_default("30s");
    list_.add_flag("--all", all_, "each of them");
    show_.add_option("FILE", file_, "what").file().required();
  }
  ~CommandLines() override { ::unsetenv("IDEM_TEST_URL"); }

  /// The parser's complaint; empty: none.
  std::string complaint(const std::vector<std::string>& words) {
    const auto asked = line_.parse(words);
    return asked ? std::string() : asked.error();
  }

  CommandLine line_{"Tests the parser.", "program"};
  Command keys_ = line_.add_command("keys", "Keys");
  Command list_ = keys_.add_command("list", "Lists them");
  Command show_ = keys_.add_command("show", "Shows one");
  std::string url_ = "http://a";
  std::string state_, file_;
  int limit_ = 0;
  std::vector<std::string> only_;
  bool all_ = false;
};

TEST_F(CommandLines, values_go_to_their_variables) {
  EXPECT_EQ(complaint({"keys", "list", "--limit", "5", "--only", "a,b", "--all", "--url",
                       "http://b", "--lease=1s"}),
            "");
  EXPECT_EQ(limit_, 5);
  EXPECT_EQ(only_, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(all_);
  EXPECT_EQ(url_, "http://b") << "an option of the command may follow its verb";
  EXPECT_EQ(list_.values_of("--lease"), std::vector<std::string>{"1s"});
  EXPECT_TRUE(list_.parsed());
  EXPECT_FALSE(show_.parsed());
  ASSERT_EQ(line_.given_commands().size(), 1U);
  EXPECT_EQ(line_.given_commands().front().name(), "keys");
}

TEST_F(CommandLines, a_variable_counts_where_the_option_is_not_given) {
  ::setenv("IDEM_TEST_URL", "http://c", 1);
  EXPECT_EQ(complaint({"keys", "list"}), "");
  EXPECT_EQ(url_, "http://c");
  EXPECT_EQ(complaint({"keys", "list", "--url", "http://d"}), "");
  EXPECT_EQ(url_, "http://d");
  EXPECT_TRUE(list_.values_of("--lease").empty());
}

TEST_F(CommandLines, wrong_words_are_an_error_and_no_exception) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{},
                                                {"kays"},
                                                {"keys", "show"},
                                                {"keys", "list", "--limit", "10"},
                                                {"keys", "list", "--limit", "x"},
                                                {"keys", "list", "--state", "ajar"},
                                                {"keys", "list", "--lease", "1s", "--lease", "2s"},
                                                {"keys", "list", "--none"}}) {
    EXPECT_NE(complaint(words), "") << testing::PrintToString(words);
  }
  EXPECT_EQ(line_.all_words_left(), std::vector<std::string>{"--none"});
}

TEST_F(CommandLines, help_is_printed_and_runs_nothing) {
  testing::internal::CaptureStdout();
  const auto asked = line_.parse({"keys", "list", "--help"});
  const std::string help = testing::internal::GetCapturedStdout();
  ASSERT_TRUE(asked);
  EXPECT_EQ(*asked, Asked::help);
  for (const auto* part : {"Lists them", "--state TEXT:{open,closed}", "--lease TEXT"}) {
    EXPECT_TRUE(help.contains(part)) << part << '\n' << help;
  }
}

TEST_F(CommandLines, the_tree_says_what_is_declared) {
  ASSERT_EQ(line_.commands().size(), 1U);
  EXPECT_EQ(keys_.notes(), "") << "it was declared before";
  EXPECT_EQ(line_.add_command("late", "Late").notes(), "of the program");
  EXPECT_EQ(list_.parent()->name(), "keys");
  EXPECT_TRUE(list_.takes_options_of_parent());
  EXPECT_FALSE(show_.takes_options_of_parent());
  EXPECT_TRUE(list_.has_option("--limit"));
  EXPECT_FALSE(show_.has_option("--limit"));
  const auto options = list_.options();
  ASSERT_EQ(options.size(), 6U);
  EXPECT_EQ(options[0].names, (std::vector<std::string>{"-h", "--help"}));
  EXPECT_EQ(options[1].help, "how many, 1 to 9");
  EXPECT_EQ(options[2].choices, (std::vector<std::string>{"open", "closed"}));
  EXPECT_TRUE(options[3].repeats);
  EXPECT_EQ(options[4].default_value, "30s");
  EXPECT_EQ(options[5].value, "");
  const auto url = keys_.options().back();
  EXPECT_EQ(url.default_value, "http://a");
  EXPECT_EQ(url.variable, "IDEM_TEST_URL");
  const auto file = show_.options().back();
  EXPECT_EQ(file.positional, "FILE");
  EXPECT_TRUE(file.is_file);
  EXPECT_TRUE(file.is_required);
  EXPECT_TRUE(file.names.empty());
}

}  // namespace
}  // namespace idem::cli
