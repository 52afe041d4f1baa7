#include "support/terminal.hpp"

#include <fmt/format.h>

#include <regex>

#include "support/admin.hpp"
#include "support/scripted_upstream.hpp"

/// Commands on a terminal: tables as wide as it is, colours, progress. In a pipe none of it.
namespace idem::test {
namespace {

const std::string long_tenant = "a-tenant-with-a-name-that-is-much-too-long-for-a-narrow-column";

class TerminalOutput : public Operated {
 protected:
  OnTerminal on(int columns, const std::string& words,
                std::vector<std::string> environment = {}) const {
    return OnTerminal(dir_.path(), "idem " + words + " --admin-url http://" + gateway_->admin(),
                      columns, environment);
  }
  Ran piped(const std::string& words) const {
    return run_program("/bin/sh", {"-c", built_program("idem").string() + " " + words +
                                             " --admin-url http://" + gateway_->admin()});
  }
  std::string refs_of_two() {
    EXPECT_EQ(ask(charge("k")).status, 201);
    const auto tenant = without(charge("lost", "drop-after"), "X-Tenant-Id");
    ask(with(tenant, "X-Tenant-Id", long_tenant));
    return only("unknown")["ref"].string;
  }
};

TEST_F(TerminalOutput, a_table_is_as_wide_as_the_terminal_and_a_ref_is_whole) {
  const auto ref = refs_of_two();
  for (const int columns : {120, 140}) {
    auto shown = on(columns, "keys list", {"NO_COLOR=1"});
    ASSERT_EQ(shown.exit_code(), 0) << shown.output();
    EXPECT_NE(shown.output().find(ref), std::string::npos) << shown.output();
    EXPECT_NE(shown.output().find("…"), std::string::npos) << shown.output();
    EXPECT_EQ(shown.output().find(long_tenant), std::string::npos) << shown.output();
  }
  auto narrow = on(60, "keys list", {"NO_COLOR=1"});
  ASSERT_EQ(narrow.exit_code(), 0);
  EXPECT_NE(narrow.output().find("REF        " + ref + "\r\n"), std::string::npos)
      << narrow.output();
  EXPECT_NE(narrow.output().find("SCOPE      " + long_tenant), std::string::npos) << "whole";
  auto unsized = on(0, "keys list", {"NO_COLOR=1", "COLUMNS=60"});
  ASSERT_EQ(unsized.exit_code(), 0);
  const std::regex age("AGE +[0-9]+s");
  EXPECT_EQ(std::regex_replace(unsized.output(), age, "AGE"),
            std::regex_replace(narrow.output(), age, "AGE"))
      << "the variable, where the terminal says nothing";
  const auto pipe = piped("keys list");
  EXPECT_NE(pipe.output.find(long_tenant), std::string::npos) << pipe.output;
  EXPECT_EQ(pipe.output.find('\x1b'), std::string::npos) << pipe.output;
}

TEST_F(TerminalOutput, colours_are_on_a_terminal_only_and_can_be_switched_off) {
  refs_of_two();
  auto coloured = on(200, "keys list");
  ASSERT_EQ(coloured.exit_code(), 0);
  EXPECT_NE(coloured.output().find("\x1b[32mcompleted\x1b[0m"), std::string::npos);
  EXPECT_NE(coloured.output().find("\x1b[31munknown\x1b[0m"), std::string::npos);
  for (const char* const off : {"NO_COLOR=1", "TERM=dumb"}) {
    auto plain = on(200, "keys list", {off});
    ASSERT_EQ(plain.exit_code(), 0) << off;
    EXPECT_EQ(plain.output().find('\x1b'), std::string::npos) << off << plain.output();
    EXPECT_NE(plain.output().find("completed"), std::string::npos);
  }
  auto empty = on(200, "keys list", {"NO_COLOR="});
  ASSERT_EQ(empty.exit_code(), 0);
  EXPECT_NE(empty.output().find("\x1b[32m"), std::string::npos) << "set, but empty";
  auto refused = on(200, "keys list --key k");
  EXPECT_EQ(refused.exit_code(), 2) << refused.output();
  EXPECT_NE(refused.output().find("\x1b[31midem keys:\x1b[0m "), std::string::npos);
}

TEST_F(TerminalOutput, json_of_each_command_is_one_text_on_stdout) {
  const auto ref = refs_of_two();
  for (const std::string& words : std::vector<std::string>{
           "keys list", "keys show " + ref, "jobs list", "approvals list", "status", "admin tokens",
           "admin token ada --role viewer", "admin revoke ada --reason left", "audit list",
           "audit verify", "audit export " + (dir_.path() / "audit").string(), "shadow report",
           "explain /charges",
           "keys resolve --all --state unknown --expect 1 --as completed --status 201 "
           "--evidence seen --reason r"}) {
    const auto ran = piped(words + " --json 2>/dev/null");
    EXPECT_TRUE(parse_json(ran.output)) << words << "\n" << ran.output;
    EXPECT_TRUE(ran.output.ends_with("}\n")) << words << "\n" << ran.output;
  }
}

/// An admin listener that verifies for as long as the test wants.
TEST(TerminalProgress, long_work_is_one_line_that_is_erased_at_the_end) {
  IDEM_NEED_PROGRAM("idem");
  const std::string verdict = R"({"lines":0,"first_bad":null,"last":null,"proven_from":null})";
  const auto answer = fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n{}",
      verdict.size(), verdict);
  Gate gate;
  ScriptedUpstream admin([&](UpstreamConnection& connection) {
    connection.read_request();
    gate.wait();
    connection.write(answer);
  });
  const TempDir dir;
  const std::string command = "idem audit verify --admin-url http://" + admin.address();
  OnTerminal person(dir.path(), command, 40);
  ASSERT_TRUE(person.shows("\r\x1b[Kidem audit: the gateway verifies, "));
  ASSERT_TRUE(person.shows("\r\x1b[Kidem audit: ")) << "it is written again";
  gate.open();
  ASSERT_TRUE(person.shows("\r\x1b[Kwhole: no line yet\r\n"));
  EXPECT_EQ(person.exit_code(), 0) << person.output();
  const auto pipe =
      run_program("/bin/sh", {"-c", built_program("idem").parent_path().string() + "/" + command});
  EXPECT_EQ(pipe.output, "whole: no line yet\n");
}

}  // namespace
}  // namespace idem::test
