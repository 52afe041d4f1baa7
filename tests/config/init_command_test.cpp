#include <sys/stat.h>

#include "config/reading.hpp"
#include "support/admin.hpp"
#include "support/gateway_fixture.hpp"

/// `idem init` as a command: what it writes, what it refuses, and how it ends.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

const std::string enough_words = "--upstream http://127.0.0.1:9 --scope static:my-api";

class InitCommand : public testing::Test {
 protected:
  void SetUp() override { IDEM_NEED_PROGRAM("idem"); }
  /// Without a terminal, in a folder of its own.
  Ran init(const std::string& words, const std::vector<std::string>& environment = {}) const {
    const auto command = "cd " + dir_.path().string() + " && exec " +
                         built_program("idem").string() + " init " + words + " < /dev/null";
    return run_program("/bin/sh", {"-c", command}, environment);
  }
  fs::path file(const std::string& name = "idem.yaml") const { return dir_.path() / name; }
  mode_t mode() const {
    struct stat status{};
    return ::stat(file().c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }
  bool is_empty() const { return fs::is_empty(dir_.path()); }

  TempDir dir_;
};

TEST_F(InitCommand, writes_a_file_checks_it_and_prints_three_commands) {
  const auto ran = init(enough_words);
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_TRUE(ran.output.contains("idem.yaml is written")) << ran.output;
  for (const auto* line :
       {"\nok\n", "\nidem gateway --config idem.yaml\n",
        "\ncurl -i http://127.0.0.1:8080/ -H 'Idempotency-Key: first-1' ", "\nidem keys list\n"}) {
    EXPECT_TRUE(ran.output.contains(line)) << line << '\n' << ran.output;
  }
  EXPECT_EQ(mode(), 0644U);
  // Nothing else lies there: no part of the file and no store.
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_.path()), fs::directory_iterator()), 1);
  const auto read = read_config(file());
  ASSERT_TRUE(read) << joined(read.error());
  EXPECT_EQ(read->options.store, "sqlite:" + file("idem.db").string());
  EXPECT_EQ(read->options.listen, "127.0.0.1:8080");
  EXPECT_EQ(read->options.admin, "127.0.0.1:9901");
}

TEST_F(InitCommand, a_file_that_is_there_stays_as_it_is) {
  write_text(file(), "mine");
  fs::create_symlink("nothing", file("link.yaml"));
  for (const auto* words : {"", "-o link.yaml"}) {
    const auto ran = init(enough_words + " " + words);
    EXPECT_EQ(ran.exit_code, 5) << ran.output;
    EXPECT_TRUE(ran.output.contains("is there and stays as it is; ")) << ran.output;
    EXPECT_TRUE(ran.output.contains("--output")) << ran.output;
  }
  EXPECT_EQ(read_file(file()), "mine");
  EXPECT_FALSE(fs::exists(file("nothing")));
}

TEST_F(InitCommand, without_a_terminal_it_names_what_is_missing_and_writes_nothing) {
  const auto none = init("");
  EXPECT_EQ(none.exit_code, 2) << none.output;
  EXPECT_TRUE(none.output.contains("--upstream and --scope are missing")) << none.output;
  const auto scope = init("--upstream http://127.0.0.1:9");
  EXPECT_EQ(scope.exit_code, 2) << scope.output;
  EXPECT_TRUE(scope.output.contains(" --scope is missing")) << scope.output;
  EXPECT_TRUE(is_empty());
}

TEST_F(InitCommand, a_wrong_value_gets_the_complaint_of_the_gateway_and_nothing_is_written) {
  for (const std::string words :
       {"--upstream ftp://api --scope static:my-api", "--upstream http://a --scope tenant",
        "--upstream http://a --scope header:X-Tenant-Id",
        "--upstream http://a --scope jwt:sub --jwt-algorithm none",
        "--upstream http://127.0.0.1:8080 --scope authorization",
        "--upstream http://a --scope authorization --store oracle://idem:s3cret@db",
        "--upstream http://a --scope authorization --listen nowhere",
        "--upstream '' --scope authorization"}) {
    const auto ran = init(words);
    EXPECT_EQ(ran.exit_code, 2) << words << ran.output;
    EXPECT_FALSE(ran.output.contains("s3cret")) << ran.output;
    Process gateway({.program = "/bin/sh",
                     .arguments = {"-c", built_program("idem").string() + " gateway " + words}});
    EXPECT_EQ(gateway.exit_code(), 2);
    auto expected = gateway.output();
    for (std::size_t at = 0; (at = expected.find("idem gateway: ")) != expected.npos;) {
      expected.replace(at, 14, "idem init: ");
    }
    EXPECT_EQ(ran.output, expected) << words;
  }
  EXPECT_TRUE(is_empty());
}

TEST_F(InitCommand, V33_a_file_with_a_password_is_for_its_owner_only) {
  const auto ran = init(enough_words + " --store postgres://idem:s3cret@db/idem");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_FALSE(ran.output.contains("s3cret")) << ran.output;
  EXPECT_EQ(mode(), 0600U);
  EXPECT_TRUE(read_file(file()).contains("s3cret"));
}

TEST_F(InitCommand, a_path_of_a_flag_means_the_same_in_a_file_of_another_folder) {
  fs::create_directory(file("etc"));
  const auto ran = init(enough_words + " --store sqlite:./here.db --output etc/my idem.yaml");
  EXPECT_EQ(ran.exit_code, 2) << "an argument too many\n" << ran.output;
  const auto quoted = init(enough_words + " --store sqlite:./here.db --output 'etc/my idem.yaml'");
  EXPECT_EQ(quoted.exit_code, 0) << quoted.output;
  EXPECT_TRUE(quoted.output.contains("\nidem gateway --config 'etc/my idem.yaml'\n"));
  const auto read = read_config(file("etc/my idem.yaml"));
  ASSERT_TRUE(read) << joined(read.error());
  EXPECT_EQ(read->options.store, "sqlite:" + file("here.db").string());
}

TEST_F(InitCommand, a_name_that_begins_with_a_dash_is_a_name) {
  const auto ran = init(enough_words + " --output=-my.yaml");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_TRUE(ran.output.contains("\nidem gateway --config ./-my.yaml\n")) << ran.output;
  EXPECT_TRUE(fs::exists(file("-my.yaml")));
}

TEST_F(InitCommand, a_folder_that_is_missing_is_an_error_with_a_sentence) {
  const auto ran = init(enough_words + " --output no/idem.yaml");
  EXPECT_EQ(ran.exit_code, 2) << ran.output;
  EXPECT_TRUE(ran.output.contains("--output: the folder of no/idem.yaml is not there"))
      << ran.output;
  EXPECT_TRUE(is_empty());
}

/// At no size may a part of the file, or of its text under another name, stay behind.
TEST_F(InitCommand, a_full_disk_leaves_nothing_behind) {
  for (const std::uint64_t bytes : {1UL, 100UL, 3'000UL}) {
    Process process({.program = built_program("idem"),
                     .arguments = {"init", "--upstream", "http://127.0.0.1:9", "--scope",
                                   "static:my-api", "--output", file().string()},
                     .file_bytes_max = bytes});
    EXPECT_EQ(process.exit_code(), 1) << bytes << process.output();
    EXPECT_TRUE(process.output().contains("idem.yaml: File too large")) << process.output();
    EXPECT_TRUE(is_empty()) << bytes;
  }
}

TEST_F(InitCommand, variables_count_as_everywhere) {
  const auto ran = init("--scope static:my-api", {"IDEM_UPSTREAM=http://127.0.0.1:9"});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  const auto read = read_config(file());
  ASSERT_TRUE(read) << joined(read.error());
  EXPECT_EQ(read->given.upstream.text, "http://127.0.0.1:9");
}

TEST_F(InitCommand, a_file_whose_check_fails_is_kept_and_the_command_says_so) {
  const auto ran = init(enough_words, {"IDEM_LEASE=soon"});
  EXPECT_EQ(ran.exit_code, 2) << ran.output;
  EXPECT_TRUE(ran.output.contains("IDEM_LEASE: ")) << ran.output;
  EXPECT_TRUE(ran.output.contains("idem.yaml was kept. ")) << ran.output;
  EXPECT_FALSE(ran.output.contains("curl")) << ran.output;
  EXPECT_TRUE(read_config(file()));
}

TEST_F(InitCommand, the_next_commands_fit_the_settings) {
  const auto header = init(
      "--upstream http://127.0.0.1:9 --scope header:X-Tenant-Id "
      "--trusted-proxy 10.0.0.0/8 --listen 0.0.0.0:81 --admin [::1]:82");
  EXPECT_EQ(header.exit_code, 0) << header.output;
  EXPECT_TRUE(header.output.contains("curl -i http://127.0.0.1:81/ -H 'X-Tenant-Id: acme' -H "))
      << header.output;
  EXPECT_TRUE(header.output.contains("# Send this one from a trusted proxy: ")) << header.output;
  EXPECT_TRUE(header.output.contains("idem keys list --admin-url ")) << header.output;
  EXPECT_TRUE(header.output.contains("http://[::1]:82")) << header.output;
  fs::remove(file());
  const auto any = init(enough_words + " --listen 127.0.0.1:0");
  EXPECT_TRUE(any.output.contains("# PORT: the gateway logs it")) << any.output;
}

}  // namespace
}  // namespace idem::test
