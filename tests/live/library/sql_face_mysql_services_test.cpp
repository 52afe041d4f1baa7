#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "support/json.hpp"
#include "support/live.hpp"
#include "support/mysql.hpp"

// Services in Python and PHP behind a gateway on MariaDB, which complete their own record in the
// transaction of their rows (protocol.md §17): examples/sql-face, as docs/sql-face-mysql.md shows
// them.

namespace idem::test {
namespace {

namespace fs = std::filesystem;

const fs::path mysql_root = IDEM_SOURCE_DIR;
const fs::path mysql_examples = mysql_root / "examples/sql-face";

struct MysqlLanguage {
  std::string name;
  std::string source;
  fs::path program;
  std::vector<std::string> probe;  ///< Succeeds where the driver is there.
};

std::ostream& operator<<(std::ostream& out, const MysqlLanguage& language) {
  return out << language.name;
}

const std::vector<MysqlLanguage>& mysql_languages() {
  // Debian's programs with Debian's drivers.
  static const std::vector<MysqlLanguage> all{
      {"python", "python-mysql/payments.py", "/usr/bin/python3", {"-c", "import pymysql"}},
      {"php",
       "php/payments.php",
       "/usr/bin/php",
       {"-r", "exit(extension_loaded('pdo_mysql') && extension_loaded('posix') ? 0 : 1);"}}};
  return all;
}

ProcessOptions run_of(const MysqlLanguage& language, std::vector<std::string> arguments,
                      const std::string& url, bool dies) {
  return {
      .program = language.program,
      .arguments = std::move(arguments),
      .environment = {"DATABASE_URL=" + url, fmt::format("DIE_AFTER_COMMIT={}", dies ? "1" : "")}};
}

class MysqlFaceServices : public testing::TestWithParam<MysqlLanguage> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    const auto& language = GetParam();
    if (!fs::exists(language.program) ||
        Process(run_of(language, language.probe, {}, false)).exit_code() != 0) {
      if (required("IDEM_REQUIRE_LIVE")) FAIL() << "no MySQL driver for " << language.name;
      GTEST_SKIP() << "no MySQL driver for " << language.name;
    }
    session_ = std::make_unique<MysqlSession>(database_.url());
    session_->run(read_file(mysql_examples / "payments-mysql.sql"));
  }

  std::string source() const { return (mysql_examples / GetParam().source).string(); }

  /// On a port that the system chose; `dies`: right after its first commit.
  void start_service(bool dies = false) {
    const bool is_php = GetParam().name == "php";
    service_ = std::make_unique<Process>(
        run_of(GetParam(),
               is_php ? std::vector<std::string>{"-S", "127.0.0.1:0", source()}
                      : std::vector<std::string>{source(), "serve", "127.0.0.1:0"},
               database_.url(), dies));
    if (is_php) {
      // "... Development Server (http://127.0.0.1:PORT) started"
      const auto line = service_->wait_for_line("(http://");
      ASSERT_TRUE(line.has_value());
      const auto from = line->find("//") + 2;
      address_ = line->substr(from, line->find(')') - from);
    } else {
      address_ = service_->wait_for_address("payments");
    }
    ASSERT_FALSE(address_.empty());
    gateway_ = a_gateway();
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  std::unique_ptr<Gateway> a_gateway() {
    return std::make_unique<Gateway>(
        GatewayOptions{.upstream = address_, .store_url = database_.url()});
  }

  /// One run of the example's command; what it prints.
  std::string pay(const std::string& amount, int exit_code, bool dies = false) {
    Process command(
        run_of(GetParam(), {source(), "pay", "acme", "k", amount}, database_.url(), dies));
    EXPECT_EQ(command.exit_code(), exit_code) << command.output();
    return command.output();
  }

  std::string payments() { return session_->run("SELECT count(*) FROM payments"); }
  std::string id_of_the_payment() { return session_->run("SELECT id FROM payments"); }

  static Request payment(std::string_view key, std::string_view body = R"({"amount":1250})") {
    Request request = charge(key, {}, body);
    request.target = "/payments";
    return request;
  }

  TestMysqlDatabase database_;
  std::unique_ptr<MysqlSession> session_;
  std::unique_ptr<Process> service_;
  std::string address_;
  std::unique_ptr<Gateway> gateway_;
};

constexpr int killed = 128 + SIGKILL;
constexpr int mysql_died = 9;  ///< The exit code of Python's DIE_AFTER_COMMIT.

bool has_died(int exit_code) { return exit_code == killed || exit_code == mysql_died; }

TEST_P(MysqlFaceServices, S17_a_retry_gets_the_answer_that_the_service_stored_with_its_row) {
  start_service();
  const auto first = send_once(gateway_->address(), payment("k"));
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(first.get("Idempotency-Outcome"), "stored");
  EXPECT_FALSE(first.get("Idempotent-Replayed")) << "this is the request that was run";
  EXPECT_EQ(first.get("Location"), "/payments/" + id_of_the_payment());
  EXPECT_TRUE(replays(first, send_once(gateway_->address(), payment("k"))));
  EXPECT_TRUE(is_problem(send_once(gateway_->address(), payment("k", R"({"amount":5})")), 422,
                         "key_reused"));
  EXPECT_EQ(payments(), "1");
}

TEST_P(MysqlFaceServices, S17_T57_a_service_that_dies_after_its_commit_has_answered) {
  start_service(true);
  const auto first = send_once(gateway_->address(), payment("k"));
  EXPECT_TRUE(has_died(service_->exit_code()));
  // Nobody is there any more to say it but the record.
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(first.get("Location"), "/payments/" + id_of_the_payment());
  EXPECT_TRUE(replays(first, send_once(gateway_->address(), payment("k"))));
  EXPECT_EQ(payments(), "1");
}

TEST_P(MysqlFaceServices, S17_two_gateways_and_one_row_for_each_key) {
  start_service();
  const auto other = a_gateway();
  ASSERT_TRUE(other->running()) << other->process().output();
  constexpr int rounds = 20;
  for (int round = 0; round < rounds; ++round) {
    const auto request = payment(fmt::format("k{}", round));
    Connection one(gateway_->address());
    Connection two(other->address());
    one.send(request);
    two.send(request);
    const auto a = one.read_response();
    const auto b = two.read_response();
    EXPECT_TRUE(a.status == 201 || b.status == 201);
    const auto settled = ask_until_settled(other->address(), request);
    for (const auto& answer : {a, b}) {
      EXPECT_TRUE(answer.status == 201 ? replays(answer, settled)
                                       : is_problem(answer, 409, "in_progress"));
    }
  }
  EXPECT_EQ(payments(), std::to_string(rounds));
}

TEST_P(MysqlFaceServices, S17_work_that_was_rolled_back_runs_again) {
  start_service();
  session_->run("ALTER TABLE payments RENAME TO elsewhere");
  const auto first = send_once(gateway_->address(), payment("k"));
  EXPECT_EQ(first.status, 503);
  EXPECT_EQ(first.get("Idempotency-Outcome"), "released");
  session_->run("ALTER TABLE elsewhere RENAME TO payments");
  const auto retry = send_once(gateway_->address(), payment("k"));
  EXPECT_EQ(retry.status, 201);
  EXPECT_TRUE(replays(retry, send_once(gateway_->address(), payment("k"))));
  EXPECT_EQ(payments(), "1");
}

TEST_P(MysqlFaceServices, S17_a_call_that_bypasses_the_gateway_is_refused) {
  start_service();
  EXPECT_EQ(send_once(address_, payment("k")).status, 400);
  int asked = 0;
  for (const auto* body : {"", "[]", "{}", R"({"amount":0})", R"({"amount":"5"})",
                           R"({"amount":1.5})", R"({"amount":true})"}) {
    const auto key = fmt::format("k{}", ++asked);
    EXPECT_EQ(send_once(gateway_->address(), payment(key, body)).status, 422) << body;
  }
  EXPECT_EQ(payments(), "0");
}

TEST_P(MysqlFaceServices, S17_the_command_pays_once_however_often_it_is_run) {
  start_service();  // The gateway has set the schema up; it is not asked.
  const auto first = pay("1250", 0);
  EXPECT_TRUE(first.starts_with("201 ")) << first;
  const auto json = parse_json(first.substr(4));
  ASSERT_TRUE(json.has_value()) << first;
  EXPECT_EQ((*json)["id"].string, id_of_the_payment());
  EXPECT_EQ(pay("1250", 0), first);
  EXPECT_NE(pay("5", 1).find("key_misuse"), std::string::npos);
  EXPECT_EQ(payments(), "1");
}

TEST_P(MysqlFaceServices, S17_T57_the_command_that_died_after_its_commit_has_paid) {
  start_service();
  Process command(
      run_of(GetParam(), {source(), "pay", "acme", "k", "1250"}, database_.url(), true));
  EXPECT_TRUE(has_died(command.exit_code()));
  EXPECT_TRUE(pay("1250", 0).starts_with("201 "));
  EXPECT_EQ(payments(), "1");
}

INSTANTIATE_TEST_SUITE_P(Languages, MysqlFaceServices, testing::ValuesIn(mysql_languages()),
                         [](const auto& language) { return language.param.name; });

}  // namespace
}  // namespace idem::test
