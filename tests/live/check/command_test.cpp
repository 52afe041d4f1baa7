#include <gtest/gtest.h>

#include <fstream>

#include "support/admin.hpp"
#include "support/json.hpp"
#include "support/live.hpp"
#include "support/temp_dir.hpp"

/// The command line of `idem check`: what it refuses, writes and hides.
namespace idem::test {
namespace {

class CheckCommands : public testing::Test {
 protected:
  void SetUp() override { IDEM_NEED_PROGRAM("idem-check"); }
  std::string file(const std::string& name, const std::string& text) {
    const std::string path = (dir_.path() / name).string();
    std::ofstream(path) << text;
    return path;
  }
  std::string config() {
    return file("check.yaml", R"(request:
  path: /charges
  headers: { Authorization: "Bearer ${CHECK_TOKEN}", X-Tenant-Id: acme }
  body: '{"amount": {{amount}}, "order": "{{unique}}"}'
resource: /id
effects: { url: "http://)" + provider_.address() +
                                  R"(/ledger", pointer: /effects }
)");
  }
  Ran check(std::vector<std::string> words) {
    return run_program(built_program("idem-check"), std::move(words), {"CHECK_TOKEN=s3cret-token"});
  }
  static std::string content(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  TempDir dir_;
  Provider provider_;
};

TEST_F(CheckCommands, convicts_an_api_that_knows_no_keys_and_writes_each_report) {
  const auto at = [&](const char* name) { return (dir_.path() / name).string(); };
  const auto ran = check({"http://" + provider_.address(),
                          "--config",
                          config(),
                          "--rate",
                          "0",
                          "--only",
                          "replay",
                          "race.two",
                          "--json",
                          at("r.json"),
                          "--junit",
                          at("r.xml"),
                          "--sarif",
                          at("r.sarif"),
                          "--html",
                          at("r.html"),
                          "--badge",
                          at("r.svg"),
                          "--seed",
                          "7"});
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  const Json report = parse_json(content(at("r.json"))).value_or(Json{});
  EXPECT_EQ(report["verdict"].string, "fail");
  EXPECT_EQ(report["seed"].integer, 7);
  std::set<std::string> failed;
  for (const Json& one : report["cases"].items) {
    if (one["result"].string == "fail") failed.insert(one["id"].string);
  }
  EXPECT_EQ(failed, (std::set<std::string>{"replay.effect", "race.two"})) << ran.output;
  for (const char* const name : {"r.json", "r.xml", "r.sarif", "r.html", "r.svg"}) {
    EXPECT_FALSE(content(at(name)).empty()) << name;
    EXPECT_EQ(content(at(name)).find("s3cret-token"), std::string::npos) << name;
  }
  EXPECT_EQ(ran.output.find("s3cret-token"), std::string::npos) << ran.output;
  EXPECT_NE(content(at("r.json")).find("Authorization: Bearer ***"), std::string::npos);
}

TEST_F(CheckCommands, a_dry_run_sends_nothing_and_shows_all) {
  const auto ran = check({"http://" + provider_.address(), "--config", config(), "--dry-run"});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_NE(ran.output.find("POST /charges HTTP/1.1"), std::string::npos);
  EXPECT_EQ(ran.output.find("s3cret-token"), std::string::npos);
  const auto ledger =
      send_once(provider_.address(), {.method = "GET", .target = "/ledger", .fields = {}});
  EXPECT_EQ(parse_json(ledger.body).value_or(Json{})["arrivals"].integer, 0) << ledger.body;
}

TEST_F(CheckCommands, the_path_of_the_url_is_before_each_path) {
  const std::string with_other = file("o.yaml", R"(request: { path: /p }
resource: Location
other: { path: "/q/{{unique}}" }
)");
  const auto ran = check(
      {"http://127.0.0.1:9/base/", "--config", with_other, "--dry-run", "--only", "misuse.path"});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_NE(ran.output.find("POST /base/p HTTP/1.1"), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find("POST /base/q/idem-check-"), std::string::npos) << ran.output;
}

TEST_F(CheckCommands, a_folder_a_rate_and_a_url_that_cannot_be_are_refused) {
  const auto folder = check({"http://127.0.0.1:9", "--config", dir_.path().string()});
  EXPECT_EQ(folder.exit_code, 2);
  EXPECT_NE(folder.output.find("is a folder"), std::string::npos) << folder.output;
  for (const char* const rate : {"-1", "nan", "inf"}) {
    EXPECT_EQ(check({"http://127.0.0.1:9", "--config", config(), "--rate", rate}).exit_code, 2);
  }
  const auto user = check({"http://user:geheim@127.0.0.1:9", "--config", config()});
  EXPECT_EQ(user.exit_code, 2);
  EXPECT_EQ(user.output.find("geheim"), std::string::npos) << user.output;
}

TEST_F(CheckCommands, refuses_an_api_elsewhere_unless_it_is_the_callers_own) {
  const auto ran = check({"http://192.0.2.1:9", "--config", config()});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.output.find("--i-own-this"), std::string::npos) << ran.output;
  const std::string elsewhere = file("e.yaml", R"(request: { path: /p }
effects: { url: "http://192.0.2.1/ledger" }
)");
  EXPECT_EQ(check({"http://127.0.0.1:9", "--config", elsewhere}).exit_code, 2);
}

TEST_F(CheckCommands, says_what_is_missing_wrong_or_away) {
  EXPECT_EQ(check({}).exit_code, 2);
  const auto no_file = check({"http://127.0.0.1:9", "--config", "/nonexistent.yaml"});
  EXPECT_EQ(no_file.exit_code, 2);
  EXPECT_NE(no_file.output.find("idem-check init"), std::string::npos) << no_file.output;
  EXPECT_EQ(check({"http://127.0.0.1:1", "--config", config()}).exit_code, 3);
  EXPECT_EQ(
      check({"http://" + provider_.address(), "--config", config(), "--only", "nothing"}).exit_code,
      2);
  const auto refused = check(
      {"http://" + provider_.address(), "--config",
       file("n.yaml", "request: { path: /charges, headers: { X-Fault: \"refuse=403\" } }\n")});
  EXPECT_EQ(refused.exit_code, 3) << refused.output;
  EXPECT_NE(refused.output.find("the request of the file with 403"), std::string::npos)
      << refused.output;
}

TEST_F(CheckCommands, refuses_what_it_could_not_finish_before_it_sends_anything) {
  const std::string url = "http://" + provider_.address();
  const auto unwritable = check({url, "--config", config(), "--html", "/nonexistent/r.html"});
  EXPECT_EQ(unwritable.exit_code, 2) << unwritable.output;
  const auto swallowed = check({"--config", config(), "--only", "race", url});
  EXPECT_EQ(swallowed.exit_code, 2);
  EXPECT_NE(swallowed.output.find("--only race,key.case"), std::string::npos) << swallowed.output;
  EXPECT_EQ(check({url, "--config", config(), "--only", "race,nothing"}).exit_code, 2);
  EXPECT_EQ(check({url, "--config", config(), "--wait", "soon"}).exit_code, 2);
  const auto ledger =
      send_once(provider_.address(), {.method = "GET", .target = "/ledger", .fields = {}});
  EXPECT_EQ(parse_json(ledger.body).value_or(Json{})["arrivals"].integer, 0) << ledger.body;
}

TEST_F(CheckCommands, a_run_that_ends_early_leaves_its_reports) {
  const auto ran =
      check({"http://" + provider_.address(), "--config", config(), "--rate", "0", "--wait", "10s",
             "--only", "key.case,key.long", "--max-requests", "2", "--json", "-"});
  EXPECT_EQ(ran.exit_code, 5) << ran.output;
  const Json report = parse_json(ran.output).value_or(Json{});
  EXPECT_NE(report["ended_early"].string.find("--max-requests"), std::string::npos) << ran.output;
  EXPECT_EQ(report["cases"].items.size(), 2U);
}

TEST_F(CheckCommands, a_dry_run_needs_no_credentials) {
  const auto ran = run_program(
      built_program("idem-check"),
      {"http://" + provider_.address(), "--config", config(), "--dry-run", "--only", "abort.body"},
      {});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_NE(ran.output.find("== abort.body"), std::string::npos) << ran.output;
}

TEST_F(CheckCommands, init_writes_a_file_that_it_then_accepts) {
  const std::string openapi = file("api.json", R"({"openapi":"3.0.3","paths":{"/charges":{"post":{
    "parameters":[{"name":"Idempotency-Key","in":"header"}],
    "requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{
      "amount":{"type":"integer"},"currency":{"type":"string","enum":["EUR"]},
      "order":{"type":"string"}}}}}},
    "responses":{"201":{"content":{"application/json":{"schema":{"type":"object","properties":{
      "id":{"type":"string"}}}}}}}}}}})");
  const std::string made = (dir_.path() / "made.yaml").string();
  const auto ran =
      check({"init", "http://" + provider_.address(), "--openapi", openapi, "--config", made});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_NE(content(made).find("resource: '/id'"), std::string::npos) << content(made);
  const auto again = check({"init", "--openapi", openapi, "--config", made});
  EXPECT_EQ(again.exit_code, 5) << "a file that is there stays";
  const auto used = check({"http://" + provider_.address(), "--config", made, "--only",
                           "replay.effect", "--json", "-"});
  EXPECT_EQ(used.exit_code, 1) << used.output;
}

}  // namespace
}  // namespace idem::test
