#include <csignal>

#include "support/admin.hpp"
#include "support/live.hpp"
#include "support/socket.hpp"
#include "support/terminal.hpp"

/// What `idem init` writes is what a gateway runs with, what it prints next can be pasted, and on a
/// terminal a person answers its questions.
namespace idem::test {
namespace {

namespace fs = std::filesystem;

class InitAndRun : public testing::Test {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    ASSERT_TRUE(provider_.running());
  }
  std::string upstream() const { return "http://" + provider_.address(); }
  std::string in_folder(const std::string& command) const {
    return "cd " + dir_.path().string() +
           " && PATH=" + built_program("idem").parent_path().string() + ":$PATH && exec " + command;
  }
  Ran shell(const std::string& command) const {
    return run_program("/bin/sh", {"-c", in_folder(command)});
  }
  std::unique_ptr<Process> start(const std::string& command) const {
    return std::make_unique<Process>(
        ProcessOptions{.program = "/bin/sh", .arguments = {"-c", in_folder(command)}});
  }
  /// The line of `output` that begins so.
  static std::string line_of(const std::string& output, const std::string& begin) {
    const auto at = output.find("\n" + begin);
    if (at == output.npos) return "false";
    return output.substr(at + 1, output.find_first_of("\r\n", at + 1) - at - 1);
  }

  TempDir dir_;
  Provider provider_;
};

TEST_F(InitAndRun, a_gateway_runs_with_what_was_written) {
  const auto made = shell("idem init --listen 127.0.0.1:0 --admin 127.0.0.1:0 --upstream " +
                          upstream() + " --scope static:my-api --store embedded:./idem.store");
  ASSERT_EQ(made.exit_code, 0) << made.output;
  const auto gateway = start("idem gateway --config idem.yaml");
  const auto address = gateway->wait_for_address("gateway");
  ASSERT_FALSE(address.empty()) << gateway->output();
  const auto first = send_once(address, charge("k"));
  EXPECT_EQ(first.status, 201) << first.raw;
  EXPECT_TRUE(replays(first, send_once(address, charge("k"))));
  EXPECT_EQ(provider_.effects("k"), 1);
  EXPECT_TRUE(fs::exists(dir_.path() / "idem.store"));
  gateway->signal(SIGTERM);
  EXPECT_EQ(gateway->exit_code(), 0);
}

TEST_F(InitAndRun, the_three_commands_run_as_they_are_printed) {
  for (const std::string scope :
       {"static:my-api", "header:X-Tenant-Id --trusted-proxy 127.0.0.1/32", "authorization"}) {
    SCOPED_TRACE(scope);
    fs::remove(dir_.path() / "idem.yaml");
    fs::remove(dir_.path() / "idem.db");
    const auto made = shell("idem init --listen " + unused_address() + " --admin " +
                            unused_address() + " --upstream " + upstream() + " --scope " + scope);
    ASSERT_EQ(made.exit_code, 0) << made.output;
    const auto gateway = start(line_of(made.output, "idem gateway "));
    ASSERT_FALSE(gateway->wait_for_address("gateway").empty()) << gateway->output();
    ASSERT_FALSE(gateway->wait_for_address("admin").empty()) << gateway->output();
    const auto request = line_of(made.output, "curl ");
    const auto first = shell(request);
    EXPECT_EQ(first.exit_code, 0) << request << first.output;
    EXPECT_TRUE(first.output.contains("Idempotency-Outcome: stored")) << first.output;
    EXPECT_TRUE(shell(request).output.contains("Idempotent-Replayed: true")) << first.output;
    const auto keys = shell(line_of(made.output, "idem keys list"));
    EXPECT_EQ(keys.exit_code, 0) << keys.output;
    EXPECT_TRUE(keys.output.contains("POST /")) << keys.output;
    gateway->signal(SIGTERM);
    EXPECT_EQ(gateway->exit_code(), 0);
  }
}

TEST_F(InitAndRun, a_person_answers_on_a_terminal) {
  OnTerminal person(dir_.path(), "idem init --listen 127.0.0.1:0 --admin 127.0.0.1:0");
  ASSERT_TRUE(person.shows("--upstream, such as http://127.0.0.1:9000 (no default): "));
  person.type("ftp://api\n");
  ASSERT_TRUE(person.shows("--upstream: \"ftp://api\": "));
  ASSERT_TRUE(person.shows("(no default): "));
  person.type(upstream() + "\n");
  ASSERT_TRUE(person.shows("--scope, such as static:my-api (no default): "));
  person.type("header:X-Tenant-Id\n");
  ASSERT_TRUE(person.shows("--trusted-proxy [127.0.0.1/32]: "));
  person.type("\n");
  ASSERT_TRUE(person.shows("--store [sqlite:./idem.db]: "));
  EXPECT_FALSE(fs::exists(dir_.path() / "idem.yaml")) << "before the last answer";
  person.type("\n");
  ASSERT_TRUE(person.shows("idem.yaml is written"));
  EXPECT_EQ(person.exit_code(), 0) << person.output();

  const auto gateway = start(line_of(person.output(), "idem gateway "));
  const auto address = gateway->wait_for_address("gateway");
  ASSERT_FALSE(address.empty()) << gateway->output();
  EXPECT_EQ(send_once(address, charge("k")).status, 201);
  EXPECT_EQ(send_once(address, without(charge("l"), "X-Tenant-Id")).status, 401);
  EXPECT_EQ(provider_.effects("k"), 1);
}

TEST_F(InitAndRun, the_end_of_the_input_and_an_interrupt_write_nothing) {
  OnTerminal ended(dir_.path(), "idem init --upstream " + upstream());
  ASSERT_TRUE(ended.shows("--scope, such as"));
  ended.type("\x04");
  EXPECT_EQ(ended.exit_code(), 1) << ended.output();
  EXPECT_NE(ended.output().find("nothing was written"), std::string::npos) << ended.output();
  OnTerminal interrupted(dir_.path(), "idem init");
  ASSERT_TRUE(interrupted.shows("--upstream, such as"));
  interrupted.type("\x03");
  EXPECT_EQ(interrupted.exit_code(), -1) << "ended by the signal";
  EXPECT_TRUE(fs::is_empty(dir_.path()));
}

TEST_F(InitAndRun, a_wrong_flag_is_complained_about_before_any_question) {
  OnTerminal person(dir_.path(), "idem init --store oracle://db", 80, {"NO_COLOR=1"});
  EXPECT_EQ(person.exit_code(), 2) << person.output();
  EXPECT_NE(person.output().find("idem init: --store: "), std::string::npos) << person.output();
  EXPECT_EQ(person.output().find("--upstream"), std::string::npos) << person.output();
}

}  // namespace
}  // namespace idem::test
