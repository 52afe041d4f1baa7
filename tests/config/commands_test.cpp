#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "config/reading.hpp"
#include "support/admin.hpp"
#include "support/external_data.hpp"
#include "support/gateway_fixture.hpp"
#include "support/temp_dir.hpp"

/// What holds for every command: docs/commands.md, exit codes, the form of errors, --json.
namespace idem::test {
namespace {

struct Listed {
  std::string path;  ///< "keys list"
  bool has_json = false;
};

const std::string& page() {
  static const std::string text =
      read_file(std::filesystem::path(IDEM_SOURCE_DIR) / "docs/commands.md");
  return text;
}

/// The commands of the page, which is that of the program: see the first test.
std::vector<Listed> listed_commands() {
  std::vector<Listed> all;
  const std::regex row("\n\\| `idem ([^`]+)` \\|[^\n]*\\| (yes)? ?\\|");
  for (std::sregex_iterator one(page().begin(), page().end(), row), end; one != end; ++one) {
    all.push_back({(*one)[1], (*one)[2].matched});
  }
  return all;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

class Commands : public testing::Test {
 protected:
  void SetUp() override { IDEM_NEED_PROGRAM("idem"); }
  Ran idem(std::vector<std::string> words, std::vector<std::string> environment = {}) const {
    return run_program(built_program("idem"), std::move(words), std::move(environment));
  }
  /// What a command line writes to stdout alone.
  Ran stdout_of(const std::string& words, const std::string& to = "2>/dev/null") const {
    return run_program("/bin/sh",
                       {"-c", "cd " + dir_.path().string() + " && exec " +
                                  built_program("idem").string() + " " + words + " " + to});
  }
  Json json_of(const Ran& ran) const {
    const auto json = parse_json(ran.output);
    EXPECT_TRUE(json) << ran.output;
    return json.value_or(Json{});
  }
  TempDir dir_;
};

TEST_F(Commands, the_page_is_the_programs) {
  const auto printed = idem({"man", "--markdown"});
  EXPECT_EQ(printed.exit_code, 0);
  EXPECT_EQ(page(), printed.output) << "write it anew: idem man --markdown > docs/commands.md";
  EXPECT_GT(listed_commands().size(), 40U);
}

TEST_F(Commands, a_wrong_option_ends_each_with_2_and_the_way_to_its_help) {
  for (const auto& command : listed_commands()) {
    auto words = words_of(command.path);
    words.emplace_back("--no-such-option=secret");
    const auto ran = idem(words);
    EXPECT_EQ(ran.exit_code, 2) << command.path << ran.output;
    EXPECT_EQ(ran.output, "idem " + command.path +
                              ": there is no option \"--no-such-option\"; idem " + command.path +
                              " --help lists them\n");
  }
}

TEST_F(Commands, a_near_miss_is_suggested) {
  const auto has = [](const Ran& ran, const std::string& part) {
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_NE(ran.output.find(part), std::string::npos) << ran.output;
  };
  has(idem({"keys", "list", "--stat", "unknown"}), "did you mean --state? idem keys list --help");
  has(idem({"keys", "release", "--reasn", "r"}), "did you mean --reason?");
  has(idem({"keys", "list", "--admin-ur", "x"}), "did you mean --admin-url?");
  has(idem({"kyes"}), "idem: there is no command \"kyes\"; did you mean keys? idem --help");
  has(idem({"keys", "lst"}), "idem keys: there is no command \"lst\"; did you mean list?");
  has(idem({"keys"}), "idem keys: a command is missing: list, show, resolve, release; idem keys");
  has(idem({"keys", "show"}), "idem keys show: ref is required; idem keys show --help");
  has(idem({"jobs", "show", "1", "2"}), "idem jobs show: \"2\" is one word too many");
  has(idem({"jobs", "list", "--limit", "many"}),
      "idem jobs list: --limit: Value many not in range 1 to 100");
}

TEST_F(Commands, each_manual_page_lists_the_exit_codes) {
  ASSERT_EQ(idem({"man", "--into", dir_.path().string()}).exit_code, 0);
  std::size_t pages = 0;
  for (const auto& file : std::filesystem::directory_iterator(dir_.path())) {
    if (file.path().extension() != ".1") continue;
    ++pages;
    const auto text = read_file(file.path());
    const auto at = text.find(".SH EXIT STATUS\n.TP\n0\ndone\n");
    ASSERT_NE(at, text.npos) << file.path();
    EXPECT_NE(text.find(".TP\n5\nrefused by the state", at), text.npos) << file.path();
  }
  EXPECT_GT(pages, 15U);
  const auto unwritable = idem({"man", "--into", "/no/such/folder"});
  EXPECT_EQ(unwritable.exit_code, 1);
}

TEST_F(Commands, a_manual_page_has_the_name_of_its_command_too) {
  const auto long_name = idem({"man", "idem-keys"});
  EXPECT_EQ(long_name.exit_code, 0) << long_name.output;
  EXPECT_EQ(idem({"man", "keys"}).output, long_name.output);
  const auto none = idem({"man", "no-such"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(none.output.starts_with(
      "idem man: there is no page \"no-such\"; there are idem, idem-init, "))
      << none.output;
}

// Also without a gateway that could refuse them.
TEST_F(Commands, values_that_no_gateway_takes_end_with_2_before_one_is_asked) {
  const std::vector<std::vector<std::string>> commands{
      {"keys", "list", "--state", "foo"},
      {"keys", "list", "--limit", "0"},
      {"keys", "list", "--older-than", "soon"},
      {"keys", "show", "zz"},
      {"keys", "release", "ABCDEF", "--reason", "r", "--fence", "1"},
      {"outbox", "show", "1"},
      {"jobs", "show", "1"},
      {"keys", "list", "--limit", "1001"},
      {"keys", "resolve", "--as", "done", "--evidence", "e", "--reason", "r", "--all"},
      {"outbox", "list", "--state", "foo"},
      {"outbox", "list", "--limit", "0"},
      {"jobs", "list", "--limit", "101"},
      {"approvals", "list", "--limit", "0"},
      {"audit", "list", "--limit", "0"},
      {"reconcile", "export.csv", "--format", "xml"},
      {"reconcile", "export.csv", "--by", "amount"}};
  for (auto words : commands) {
    words.insert(words.end(), {"--admin-url", "http://127.0.0.1:1"});
    const auto ran = idem(words);
    EXPECT_EQ(ran.exit_code, 2) << words[0] << ' ' << words[1] << ": " << ran.output;
    EXPECT_FALSE(ran.output.contains("cannot be reached")) << ran.output;
  }
}

TEST_F(Commands, a_result_that_cannot_be_written_is_not_done) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  const auto ran = stdout_of("config schema", ">/dev/full");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_NE(ran.output.find("idem: the output cannot be written: No space left"), ran.output.npos)
      << ran.output;
  EXPECT_EQ(stdout_of("version --json", ">/dev/full").exit_code, 1);
}

TEST_F(Commands, json_of_version_migrate_and_init) {
  const auto version = json_of(stdout_of("version --json"))["version"].string;
  EXPECT_EQ("idem " + version + "\n", idem({"version"}).output);

  const auto made = json_of(stdout_of("migrate sqlite:./idem.db --json"));
  EXPECT_TRUE(made["is_new"].boolean);
  EXPECT_TRUE(made["store"].string.ends_with("/idem.db")) << made["store"].string;
  const auto again = json_of(stdout_of("migrate sqlite:./idem.db --json"));
  EXPECT_FALSE(again["is_new"].boolean);
  EXPECT_EQ(again["store_id"].string, made["store_id"].string);
  EXPECT_FALSE(json_of(stdout_of("migrate memory: --json"))["has_schema"].boolean);
  const auto failed = stdout_of("migrate sqlite:/no/such/folder/x.db --json");
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(failed.output, "") << "an error is a sentence on stderr";

  const std::string init = "init --upstream http://127.0.0.1:9 --scope static:a --json";
  const auto written = json_of(stdout_of(init));
  EXPECT_EQ(written["file"].string, "idem.yaml");
  EXPECT_TRUE(written["check"]["ok"].boolean);
  ASSERT_EQ(written["next"].items.size(), 3U);
  EXPECT_EQ(written["next"].items[0].string, "idem gateway --config idem.yaml");
  const auto refused = stdout_of(init);
  EXPECT_EQ(refused.exit_code, 5);
  EXPECT_EQ(refused.output, "");
}

TEST_F(Commands, json_of_a_check_has_each_complaint_with_its_place) {
  write_text((dir_.path() / "wrong.yaml").string(),
             "upstream: {url: \"http://127.0.0.1:9\"}\nscope: {from: authorization}\nlisten: 8\n");
  const auto wrong = stdout_of("config check --config wrong.yaml --json");
  EXPECT_EQ(wrong.exit_code, 2);
  const auto report = json_of(wrong);
  EXPECT_FALSE(report["ok"].boolean);
  EXPECT_EQ(report["role"].string, "gateway");
  ASSERT_EQ(report["complaints"].items.size(), 1U) << wrong.output;
  EXPECT_EQ(report["complaints"].items[0]["place"].string, "wrong.yaml:3:9");
  EXPECT_NE(report["complaints"].items[0]["message"].string.find("is a number"), std::string::npos)
      << wrong.output;
  const auto missing = json_of(stdout_of("config check --config none.yaml --json"));
  ASSERT_FALSE(missing["complaints"].items.empty());
  EXPECT_EQ(missing["complaints"].items[0]["place"].string, "--config");

  write_text((dir_.path() / "right.yaml").string(),
             "upstream: {url: \"http://127.0.0.1:9\"}\nscope: {from: authorization}\n");
  const auto right =
      run_program(built_program("idem"),
                  {"config", "check", "--config", (dir_.path() / "right.yaml").string(), "--json"},
                  {"IDEM_LEESE=1s"});
  EXPECT_EQ(right.exit_code, 0);
  const auto good = json_of(right);
  EXPECT_TRUE(good["ok"].boolean);
  ASSERT_EQ(good["warnings"].items.size(), 1U) << right.output;
  EXPECT_EQ(good["warnings"].items[0]["place"].string, "IDEM_LEESE");
}

/// The words that a verb needs, besides itself, to get as far as to the gateway. A verb that asks
/// none, though its command can, has "none".
const std::map<std::string, std::string> needed{
    {"keys list", ""},
    {"keys show", "00112233445566778899aabbccddeeff"},
    {"keys resolve",
     "00112233445566778899aabbccddeeff --fence 1 --as failed_retryable --evidence e --reason r"},
    {"keys release", "00112233445566778899aabbccddeeff --fence 1 --reason r"},
    {"outbox list", ""},
    {"outbox show", "00112233445566778899aabbccddeeff"},
    {"outbox retry", "00112233445566778899aabbccddeeff"},
    {"dlq list", ""},
    {"dlq show", "00112233445566778899aabbccddeeff"},
    {"dlq redrive", "--all --reason r"},
    {"dlq discard", "--all --reason r"},
    {"jobs list", ""},
    {"jobs show", "00112233445566778899aabbccddeeff"},
    {"jobs results", "00112233445566778899aabbccddeeff"},
    {"jobs cancel", "00112233445566778899aabbccddeeff --reason r"},
    {"approvals list", ""},
    {"approvals show", "00112233445566778899aabbccddeeff"},
    {"approvals approve", "00112233445566778899aabbccddeeff --reason r"},
    {"approvals reject", "00112233445566778899aabbccddeeff --reason r"},
    {"reconcile", "EXPORT --by operation"},
    {"status", ""},
    {"console", ""},
    {"explain", "/charges"},
    {"shadow report", ""},
    {"admin token", "ada --role viewer"},
    {"admin tokens", ""},
    {"admin revoke", "ada --reason r"},
    {"audit list", ""},
    {"audit export", "-"},
    {"audit verify", ""},
    {"store backup", "none"},
    {"store copy", "none"},
    {"store check", "none"},
    {"store recover", "none"},
    {"store reindex", "none"},
    {"store restore", "none"},
    {"store rekey", ""},
    {"store shred", "--scope a --reason r --yes"}};

TEST_F(Commands, without_a_gateway_each_of_an_operator_ends_with_3) {
  write_text((dir_.path() / "export.csv").string(), "id,operation\n1,2\n");
  std::size_t asked = 0;
  for (const auto& command : listed_commands()) {
    const auto first = command.path.substr(0, command.path.find(' '));
    if (!idem({first, "--help"}).output.contains("--admin-url")) continue;
    EXPECT_TRUE(command.has_json) << command.path;
    const auto words = needed.find(command.path);
    if (words == needed.end()) {
      ADD_FAILURE() << command.path << ": name the words that it needs, or \"none\"";
      continue;
    }
    if (words->second == "none") continue;
    ++asked;
    std::string more = words->second;
    if (const auto at = more.find("EXPORT"); at != more.npos) more.replace(at, 6, "export.csv");
    // Nothing listens on port 1, where only root could.
    const std::string line = command.path + " " + more + " --admin-url http://127.0.0.1:1";
    const auto ran = stdout_of(line, "2>&1");
    EXPECT_EQ(ran.exit_code, 3) << line << "\n" << ran.output;
    EXPECT_TRUE(ran.output.starts_with("idem " + first + ": http://127.0.0.1:1 cannot be reached"))
        << ran.output;
    EXPECT_NE(ran.output.find("--admin-url or IDEM_ADMIN_URL"), std::string::npos) << ran.output;
    const auto json = stdout_of(line + " --json");
    EXPECT_EQ(json.exit_code, 3) << line;
    EXPECT_EQ(json.output, "") << line;
  }
  EXPECT_GT(asked, 25U);
}

TEST_F(Commands, a_file_that_is_named_and_cannot_be_read_is_wrong_usage) {
  write_text((dir_.path() / "export.jsonl").string(), "{}\n");
  for (const char* const line :
       {"audit verify --file none --secret-file none",
        "audit verify --file export.jsonl --secret-file none", "reconcile none.csv --by operation",
        "explain /x -d @none", "config check --config none", "config print --config none",
        "gateway --config none", "worker --config none",
        "keys resolve 00112233445566778899aabbccddeeff --fence 1 --as completed --status 201 "
        "--evidence e --reason r "
        "--body-file none"}) {
    const auto ran = stdout_of(line, "2>&1");
    EXPECT_EQ(ran.exit_code, 2) << line << "\n" << ran.output;
    EXPECT_NE(ran.output.find("none"), std::string::npos) << ran.output;
  }
}

TEST_F(Commands, a_token_of_a_file_is_made_once) {
  const std::string line = "admin token ada --role viewer --tokens-file tokens";
  EXPECT_EQ(stdout_of(line).exit_code, 0);
  EXPECT_EQ(stdout_of(line).exit_code, 5) << "as over the admin API";
  EXPECT_EQ(stdout_of("admin revoke eve --tokens-file tokens").exit_code, 4);
  EXPECT_EQ(json_of(stdout_of("admin tokens --tokens-file tokens --json"))["tokens"].items.size(),
            1U);
}

}  // namespace
}  // namespace idem::test
