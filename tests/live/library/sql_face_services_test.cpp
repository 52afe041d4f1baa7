#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "core/bytes/ascii.hpp"
#include "support/json.hpp"
#include "support/live.hpp"
#include "support/postgres.hpp"

// Services in other languages behind a gateway, which complete their own record in the transaction
// of their rows (protocol.md §17): examples/sql-face, as docs/sql-face.md shows them.

namespace idem::test {
namespace {

namespace fs = std::filesystem;

const fs::path root = IDEM_SOURCE_DIR;
const fs::path examples = root / "examples/sql-face";

struct Language {
  std::string name;
  std::string mark;  ///< Of its blocks on the page.
  std::string source;
  fs::path program;
  std::vector<std::string> arguments{};  ///< Before those of the example.
  std::vector<std::string> probe{};      ///< Succeeds where the driver is there.
};

std::ostream& operator<<(std::ostream& out, const Language& language) {
  return out << language.name;
}

const std::vector<Language>& languages() {
  // Of Python only Debian's has Debian's driver; of Node any, with the driver of either place
  // (scripts/need-node-driver).
  static const std::vector<Language> all{
      {"python", "python", "python/payments.py", "/usr/bin/python3", {}, {"-c", "import psycopg2"}},
      {"node",
       "javascript",
       "node/payments.js",
       "/usr/bin/env",
       {"node"},
       {"node", "-e", "require('pg')"}},
      {"go", "go", "go/payments.go", built_program("payments-go")}};
  return all;
}

/// A run of the example; to end after its first commit where `dies`.
ProcessOptions example(const Language& language, const TestDatabase& database,
                       const std::vector<std::string>& arguments, bool dies = false) {
  ProcessOptions options{.program = language.program, .arguments = language.arguments};
  if (language.name != "go") options.arguments.push_back((examples / language.source).string());
  for (const auto& argument : arguments) options.arguments.push_back(argument);
  options.environment = {
      "DATABASE_URL=" + database.uri(), fmt::format("DIE_AFTER_COMMIT={}", dies ? "1" : ""),
      "NODE_PATH=" + (root / "build/node/node_modules:/usr/share/nodejs").string()};
  return options;
}

bool has_driver(const Language& language, const TestDatabase& database) {
  if (language.name == "go") return fs::exists(language.program);
  auto options = example(language, database, {});
  options.arguments = language.probe;
  return Process(options).exit_code() == 0;
}

constexpr int died = 9;  ///< The exit code of DIE_AFTER_COMMIT.

/// The example as a service on a port that the system chose.
class Service {
 public:
  Service(const Language& language, const TestDatabase& database, bool dies = false)
      : process_(example(language, database, {"serve", "127.0.0.1:0"}, dies)),
        address_(process_.wait_for_address("payments")) {}

  bool running() const { return !address_.empty(); }
  const std::string& address() const { return address_; }
  Process& process() { return process_; }

 private:
  Process process_;
  std::string address_;
};

Request payment(std::string_view key, std::string_view body = R"({"amount":1250})") {
  Request request = charge(key, {}, body);
  request.target = "/payments";
  return request;
}

class SqlFaceServices : public testing::TestWithParam<Language> {
 protected:
  void SetUp() override {
    IDEM_NEED_PROGRAM("idem");
    if (!has_driver(GetParam(), database_)) {
      if (required("IDEM_REQUIRE_LIVE")) FAIL() << "no PostgreSQL driver for " << GetParam().name;
      GTEST_SKIP() << "no PostgreSQL driver for " << GetParam().name;
    }
    session_ = std::make_unique<Psql>(database_.uri());
    session_->run(read_file(examples / "payments.sql"));
  }

  /// `dies`: right after its first commit.
  void start_service(bool dies = false) {
    service_ = std::make_unique<Service>(GetParam(), database_, dies);
    ASSERT_TRUE(service_->running());
    gateway_ = a_gateway();
    ASSERT_TRUE(gateway_->running()) << gateway_->process().output();
  }
  std::unique_ptr<Gateway> a_gateway() {
    return std::make_unique<Gateway>(
        GatewayOptions{.upstream = service_->address(), .store_url = database_.uri()});
  }

  /// One run of the example's command; what it prints.
  std::string pay(const std::string& amount, int exit_code, bool dies = false) {
    Process command(example(GetParam(), database_, {"pay", "acme", "k", amount}, dies));
    EXPECT_EQ(command.exit_code(), exit_code);
    return command.output();
  }

  /// With the three fields of an attempt, which is not reserved by a gateway but here.
  Request direct_request(std::string_view key, int fence_off = 0) {
    const auto attempt =
        session_->run(fmt::format("SELECT operation || ' ' || fence + {} || ' ' || attempt"
                                  " FROM idem.reserve('acme', 'POST /payments', '{}', 'anything')",
                                  fence_off, key));
    std::istringstream words(attempt);
    std::string operation, fence, token;
    words >> operation >> fence >> token;
    return with(with(with(payment(key), "Idem-Operation", operation), "Idem-Fence", fence),
                "Idem-Attempt", token);
  }

  std::string payments() { return session_->run("SELECT count(*) FROM payments"); }
  std::string id_of_the_payment() { return session_->run("SELECT id FROM payments"); }
  bool tells_the_payment(const std::string& body) {
    const auto json = parse_json(body);
    return json && (*json)["id"].string == id_of_the_payment() && (*json)["amount"].integer == 1250;
  }

  TestDatabase database_;
  std::unique_ptr<Psql> session_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Gateway> gateway_;
};

TEST_P(SqlFaceServices, S17_a_retry_gets_the_answer_that_the_service_stored_with_its_row) {
  start_service();
  const auto first = send_once(gateway_->address(), payment("k"));
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(first.get("Idempotency-Outcome"), "stored");
  EXPECT_FALSE(first.get("Idempotent-Replayed")) << "this is the request that was run";
  EXPECT_EQ(first.get("Content-Type"), "application/json");
  EXPECT_EQ(first.get("Location"), "/payments/" + id_of_the_payment());
  EXPECT_TRUE(tells_the_payment(first.body)) << first.body;
  EXPECT_TRUE(replays(first, send_once(gateway_->address(), payment("k"))));
  EXPECT_TRUE(is_problem(send_once(gateway_->address(), payment("k", R"({"amount":5})")), 422,
                         "key_reused"));
  EXPECT_EQ(payments(), "1");
  EXPECT_EQ(session_->run("SELECT convert_from(f.response_body, 'UTF8')"
                          " FROM idem.slots s, idem.find(s.id) f"),
            first.body);
}

TEST_P(SqlFaceServices, S17_T57_a_service_that_dies_after_its_commit_has_answered) {
  start_service(true);
  const auto first = send_once(gateway_->address(), payment("k"));
  EXPECT_EQ(service_->process().exit_code(), died);
  // Nobody is there any more to say it but the record.
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(first.get("Location"), "/payments/" + id_of_the_payment());
  EXPECT_TRUE(replays(first, send_once(gateway_->address(), payment("k"))));
  EXPECT_EQ(payments(), "1");
}

TEST_P(SqlFaceServices, S17_T57_the_other_gateway_knows_the_dead_services_commit) {
  start_service(true);
  const auto other = a_gateway();
  ASSERT_TRUE(other->running()) << other->process().output();
  Connection client(gateway_->address());
  client.send(payment("k"));
  ASSERT_EQ(service_->process().exit_code(), died);
  const auto retry = send_once(other->address(), payment("k"));
  EXPECT_EQ(retry.status, 201);
  EXPECT_EQ(retry.get("Location"), "/payments/" + id_of_the_payment());
  EXPECT_TRUE(replays(client.read_response(), retry));
  EXPECT_EQ(payments(), "1");
}

TEST_P(SqlFaceServices, S17_two_gateways_and_one_row_for_each_key) {
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

TEST_P(SqlFaceServices, S17_work_that_was_rolled_back_runs_again) {
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

TEST_P(SqlFaceServices, S17_a_connection_that_breaks_before_the_commit_books_nothing) {
  start_service();
  session_->run(
      "CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$");
  session_->run("CREATE TRIGGER cut BEFORE INSERT ON payments FOR EACH ROW EXECUTE FUNCTION cut()");
  const auto first = send_once(gateway_->address(), payment("k"));
  EXPECT_EQ(first.status, 503);
  EXPECT_EQ(first.get("Idempotency-Outcome"), "released");
  EXPECT_EQ(payments(), "0");
  session_->run("DROP TRIGGER cut ON payments");
  EXPECT_EQ(send_once(gateway_->address(), payment("k")).status, 201);
  EXPECT_EQ(payments(), "1");
}

/// The commit itself fails, and the connection with it: the service cannot know what became of it.
TEST_P(SqlFaceServices, S17_the_result_of_a_lost_commit_is_not_guessed) {
  start_service();
  session_->run(
      "CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$");
  session_->run(
      "CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON payments DEFERRABLE INITIALLY DEFERRED"
      " FOR EACH ROW EXECUTE FUNCTION cut()");
  EXPECT_TRUE(is_problem(send_once(gateway_->address(), payment("k")), 502, "outcome_unknown"));
  session_->run("DROP TRIGGER cut ON payments");
  EXPECT_TRUE(is_problem(send_once(gateway_->address(), payment("k")), 409, "outcome_unknown"));
  EXPECT_EQ(payments(), "0");
  // It is still there for the next payment.
  EXPECT_EQ(send_once(gateway_->address(), payment("k2")).status, 201);
}

TEST_P(SqlFaceServices, S17_a_stale_or_repeated_service_call_books_nothing) {
  start_service();
  const auto stale = send_once(service_->address(), direct_request("late", 1));
  EXPECT_EQ(stale.status, 409) << stale.body;
  EXPECT_EQ(payments(), "0");
  const auto request = direct_request("twice");
  EXPECT_EQ(send_once(service_->address(), request).status, 201);
  EXPECT_EQ(send_once(service_->address(), request).status, 409) << "one attempt, delivered twice";
  EXPECT_EQ(payments(), "1");
}

TEST_P(SqlFaceServices, S17_a_call_that_bypasses_the_gateway_is_refused) {
  start_service();
  EXPECT_EQ(send_once(service_->address(), payment("k")).status, 400);
  int asked = 0;
  for (const auto* body : {"", "[]", "{}", R"({"amount":0})", R"({"amount":"5"})",
                           R"({"amount":1.5})", R"({"amount":true})"}) {
    const auto key = fmt::format("k{}", ++asked);
    EXPECT_EQ(send_once(gateway_->address(), payment(key, body)).status, 422) << body;
  }
  EXPECT_EQ(payments(), "0");
}

TEST_P(SqlFaceServices, S17_the_command_pays_once_however_often_it_is_run) {
  start_service();  // The gateway has set the schema up; it is not asked.
  const auto first = pay("1250", 0);
  EXPECT_TRUE(first.starts_with("201 ")) << first;
  EXPECT_TRUE(tells_the_payment(first.substr(4))) << first;
  EXPECT_EQ(pay("1250", 0), first);
  EXPECT_NE(pay("5", 1).find("key_misuse"), std::string::npos);
  EXPECT_EQ(payments(), "1");
}

TEST_P(SqlFaceServices, S17_a_command_that_could_not_pay_fails) {
  start_service();
  session_->run("ALTER TABLE payments RENAME TO elsewhere");
  EXPECT_NE(pay("1250", 1).find("503 "), std::string::npos);
  session_->run("ALTER TABLE elsewhere RENAME TO payments");
  EXPECT_NE(pay("1250", 1).find("in_progress"), std::string::npos) << "until its lease is over";
  EXPECT_EQ(payments(), "0");
}

TEST_P(SqlFaceServices, S17_T57_the_command_that_died_after_its_commit_has_paid) {
  start_service();
  EXPECT_EQ(pay("1250", died, true), "");
  const auto again = pay("1250", 0);
  EXPECT_TRUE(again.starts_with("201 ")) << again;
  EXPECT_TRUE(tells_the_payment(again.substr(4))) << again;
  EXPECT_EQ(payments(), "1");
}

INSTANTIATE_TEST_SUITE_P(Languages, SqlFaceServices, testing::ValuesIn(languages()),
                         [](const auto& language) { return language.param.name; });

// ---- the page ----

/// Without what stands before and behind each line, which an excerpt of a page may leave out.
std::string plain(const std::string& text) {
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);) {
    all += trimmed(line);
    all += '\n';
  }
  return all;
}

TEST(SqlFacePage, shows_lines_of_the_examples_that_are_tested) {
  const std::string page = read_file(root / "docs/sql-face.md");
  for (const auto& language : languages()) {
    const std::string source = plain(read_file(examples / language.source));
    const std::string mark = "```" + language.mark + "\n";
    int blocks = 0;
    for (auto at = page.find(mark); at != page.npos; at = page.find(mark, at), ++blocks) {
      at += mark.size();
      const auto block = plain(page.substr(at, page.find("```", at) - at));
      EXPECT_NE(source.find(block), source.npos) << language.source << " has no\n" << block;
    }
    EXPECT_GE(blocks, 1) << language.name;
    EXPECT_NE(page.find("examples/sql-face/" + language.source), page.npos);
  }
}

}  // namespace
}  // namespace idem::test
