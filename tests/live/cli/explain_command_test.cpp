#include <fstream>

#include "support/admin.hpp"

namespace idem::test {
namespace {

/// `idem explain`: exit code 0 whatever becomes of the request, 2 for wrong usage, 3 without
/// answer.
class ExplainCommand : public Operated {
 protected:
  Ran idem(std::vector<std::string> words) {
    words.insert(words.begin(), "explain");
    return run_program(built_program("idem"), words,
                       {"IDEM_ADMIN_URL=http://" + gateway_->admin()});
  }
  static std::vector<std::string> charging(std::vector<std::string> more) {
    std::vector<std::string> words{"/charges",
                                   "-H",
                                   "X-Tenant-Id: acme",
                                   "-H",
                                   "Idempotency-Key: k",
                                   "-H",
                                   "Content-Type: application/json"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

constexpr const char* body = R"({"amount":1250,"currency":"EUR"})";

TEST_F(ExplainCommand, shows_what_would_happen_and_why) {
  const auto fresh = idem(charging({"-d", body}));
  EXPECT_EQ(fresh.exit_code, 0) << fresh.output;
  for (const auto* part : {"outcome", "execute", "the upstream's", "acme", "POST /charges",
                           "Idempotency-Key, bare, 1 bytes", "has no record", "not compared"}) {
    EXPECT_NE(fresh.output.find(part), std::string::npos) << part << fresh.output;
  }
  EXPECT_EQ(effects("k"), 0);
  ASSERT_EQ(ask(charge("k")).status, 201);
  const auto replay = idem(charging({"-X", "POST", "--data", body}));
  EXPECT_EQ(replay.exit_code, 0);
  EXPECT_NE(replay.output.find("replay"), std::string::npos) << replay.output;
  EXPECT_NE(replay.output.find(only("completed")["ref"].string), std::string::npos);
  const auto misuse = idem(charging({"-d", R"({"amount":1250,"currency":"EUR","to":"x"})"}));
  EXPECT_EQ(misuse.exit_code, 0);
  for (const auto* part : {"misuse", "422 key_reused, retry new_key_safe", "another than",
                           "body /to: stored absent, sent string, 1 character"}) {
    EXPECT_NE(misuse.output.find(part), std::string::npos) << part << misuse.output;
  }
  EXPECT_EQ(effects("k"), 1);
}

TEST_F(ExplainCommand, prints_the_answer_of_the_api_with_json_and_reads_the_body_from_a_file) {
  ASSERT_EQ(ask(charge("k")).status, 201);
  const auto file = (dir_.path() / "body").string();
  std::ofstream(file) << body;
  const auto said = idem(charging({"-d", "@" + file, "--json"}));
  EXPECT_EQ(said.exit_code, 0);
  const auto json = parse_json(said.output).value_or(Json{});
  EXPECT_EQ(json["outcome"].string, "replay") << said.output;
  const auto get = idem({"/charges", "--json"});
  EXPECT_EQ(parse_json(get.output).value_or(Json{})["outcome"].string, "pass") << get.output;
  const auto named =
      idem({"/charges", "-X", "POST", "-H", "Idempotency-Key: k", "-H",
            "Content-Type: application/json", "-d", body, "--scope", "acme", "--json"});
  EXPECT_EQ(parse_json(named.output).value_or(Json{})["outcome"].string, "replay");
}

TEST_F(ExplainCommand, says_what_is_wrong_with_its_use) {
  EXPECT_EQ(idem({}).exit_code, 2);
  EXPECT_EQ(idem({"/charges", "-H", "no colon"}).exit_code, 2);
  EXPECT_EQ(idem({"/charges", "-d", "@/no/such/file"}).exit_code, 2);
  const auto wrong = idem({"/charges", "-H", "Content-Length: 7"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.output.find("/headers/0"), std::string::npos) << wrong.output;
  EXPECT_EQ(idem({"/charges", "--admin-url", "http://127.0.0.1:1"}).exit_code, 3);
}

}  // namespace
}  // namespace idem::test
