#include "core/bytes/json_string.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "support/admin.hpp"
#include "support/scripted_upstream.hpp"

/// The operator's token of a gateway that has no other login.
namespace idem::test {
namespace {

class LoginByDefault : public Operated {
 protected:
  std::string token_file() { return (dir_.path() / "idem.db.admin-token").string(); }
  Ran idem(std::vector<std::string> words, std::vector<std::string> environment = {}) {
    environment.push_back("IDEM_ADMIN_URL=http://" + gateway_->admin());
    return run_program(built_program("idem"), std::move(words), std::move(environment));
  }
};

TEST_F(LoginByDefault, the_command_line_finds_the_operators_token_by_itself) {
  const auto token_line = gateway_->process().wait_for_line("admin_token file=");
  ASSERT_TRUE(token_line);
  const std::string file = token_line->substr(token_line->find('=') + 1);
  struct stat status{};
  ASSERT_EQ(::stat(file.c_str(), &status), 0) << file;
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  EXPECT_EQ(idem({"keys", "list"}).exit_code, 0);
  EXPECT_EQ(idem({"status"}).exit_code, 0);
  Connection connection(gateway_->admin());
  const auto refused = connection.exchange(
      {.method = "GET", .target = "/v1/keys", .fields = {{"Host", "localhost"}}});
  EXPECT_TRUE(is_problem(refused, 401, "login_required")) << refused.raw;
  EXPECT_EQ(parse_json(refused.body).value_or(Json{})["token_file"].string, file);
  EXPECT_EQ(idem({"keys", "list"}, {"IDEM_ADMIN_TOKEN=idem_" + std::string(64, '1')}).exit_code, 1);
  EXPECT_EQ(idem({"keys", "list"}, {"IDEM_ADMIN_TOKEN_FILE=" + file}).exit_code, 0);
  EXPECT_EQ(idem({"keys", "list"}, {"IDEM_ADMIN_TOKEN_FILE=" + file + "x"}).exit_code, 1);
  EXPECT_EQ(gateway_->process().output().find(read_file(file).substr(0, 69)), std::string::npos);
}

TEST_F(LoginByDefault, a_token_made_with_it_has_its_role_and_its_name) {
  const auto made = idem({"admin", "token", "ada", "--role", "viewer", "--json"});
  ASSERT_EQ(made.exit_code, 0) << made.output;
  const std::string token = parse_json(made.output).value_or(Json{})["token"].string;
  EXPECT_EQ(idem({"keys", "list"}, {"IDEM_ADMIN_TOKEN=" + token}).exit_code, 0);
  const auto refused = idem({"admin", "tokens"}, {"IDEM_ADMIN_TOKEN=" + token});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.output.find("This needs the role operator; the caller has viewer."),
            std::string::npos)
      << refused.output;
  EXPECT_EQ(idem({"admin", "token", "ada", "--role", "viewer"}).exit_code, 5)
      << "the name is taken";
  EXPECT_EQ(idem({"admin", "token", "eve", "--role", "root"}).exit_code, 2);
  const auto listed = idem({"admin", "tokens"});
  EXPECT_NE(listed.output.find("ada"), std::string::npos) << listed.output;
  EXPECT_EQ(listed.output.find(token), std::string::npos);
  gateway_->restart();
  ASSERT_TRUE(gateway_->running());
  EXPECT_EQ(idem({"keys", "list"}, {"IDEM_ADMIN_TOKEN=" + token}).exit_code, 0) << "it outlives us";
  EXPECT_EQ(idem({"admin", "revoke", "ada", "--reason", "left"}).exit_code, 0);
  EXPECT_EQ(idem({"keys", "list"}, {"IDEM_ADMIN_TOKEN=" + token}).exit_code, 1);
}

TEST_F(LoginByDefault, tokens_are_made_listed_and_revoked_over_the_api) {
  EXPECT_TRUE(read("/v1/tokens")["tokens"].items.empty());
  const auto made = post("/v1/tokens", R"({"name":"ada","role":"support"})");
  ASSERT_EQ(made.status, 200) << made.raw;
  const Json token = parse_json(made.body).value_or(Json{});
  EXPECT_EQ(token["role"].string, "support");
  EXPECT_EQ(post("/v1/tokens", R"({"name":"ada","role":"viewer"})").status, 409);
  for (const auto* wrong :
       {R"({"name":"a b","role":"viewer"})", R"({"name":"eve","role":"root"})", R"({"name":"eve"})",
        R"({"name":"eve","role":"viewer","more":1})", "{"}) {
    EXPECT_EQ(post("/v1/tokens", wrong).status, 400) << wrong;
  }
  const Json listed = read("/v1/tokens");
  ASSERT_EQ(listed["tokens"].items.size(), 1U);
  EXPECT_EQ(listed["tokens"].items[0]["name"].string, "ada");
  EXPECT_EQ(post("/v1/tokens/ada/revoke", "{}").status, 400) << "without a reason";
  const auto revoked = post("/v1/tokens/ada/revoke", R"({"reason":"left"})");
  ASSERT_EQ(revoked.status, 200) << revoked.raw;
  EXPECT_EQ(post("/v1/tokens/ada/revoke", R"({"reason":"left"})").status, 404);
  EXPECT_TRUE(read("/v1/tokens")["tokens"].items.empty());
}

// Who listens in the gateway's place can name any file. The test's own user stands for another one:
// the file is nobody's.
TEST_F(LoginByDefault, the_command_line_sends_no_token_to_another_user_who_listens) {
  const auto file = dir_.path() / "the-gateways";
  std::ofstream(file) << "idem_" + std::string(64, '1') + "\n";
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  if (::chown(file.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can give a file away";
  for (const auto& [named, why] : std::vector<std::pair<std::string, std::string>>{
           {file.string(), "belongs to another user than what listens on port"},
           {"/dev/null", "is no regular file"},
           {(dir_.path() / "none\x1b[2J").string(), "there is no such file"},
           {"relative", "is no absolute path"}}) {
    ScriptedUpstream squatter([named](UpstreamConnection& connection) {
      connection.read_request();
      const std::string body =
          R"({"type":"/.idem/problems/login_required","status":401,"token_file":)" +
          json_string(named) + '}';
      connection.write(
          fmt::format("HTTP/1.1 401 No\r\nContent-Length: {}\r\nConnection: "
                      "close\r\n\r\n{}",
                      body.size(), body));
      connection.close();
    });
    const auto ran = run_program(
        built_program("idem"), {"keys", "release", std::string(32, '0'), "--fence", "1", "--reason",
                                "secret", "--admin-url", "http://" + squatter.address()});
    EXPECT_EQ(ran.exit_code, 1) << ran.output;
    EXPECT_NE(ran.output.find(why), std::string::npos) << ran.output;
    EXPECT_EQ(ran.output.find('\x1b'), std::string::npos);
    ASSERT_EQ(squatter.received().size(), 1U);
    EXPECT_TRUE(squatter.received()[0].starts_with("GET /v1/status ")) << "and no order";
    EXPECT_EQ(squatter.received()[0].find("idem_"), std::string::npos);
  }
}

// A socket belongs to the user who makes it.
TEST_F(LoginByDefault, the_command_line_believes_no_other_user_who_asks_for_no_login) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can listen as another user";
  ASSERT_EQ(::seteuid(65534), 0);
  auto squatter = std::make_unique<ScriptedUpstream>([](UpstreamConnection& connection) {
    connection.read_request();
    connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
    connection.close();
  });
  ASSERT_EQ(::seteuid(0), 0);
  const std::vector<std::vector<std::string>> commands{
      {"keys", "release", std::string(32, '0'), "--fence", "1", "--reason", "secret"},
      {"audit", "verify"}};
  for (auto words : commands) {
    words.insert(words.end(), {"--admin-url", "http://" + squatter->address()});
    const auto ran = run_program(built_program("idem"), words);
    EXPECT_EQ(ran.exit_code, 1) << ran.output;
    EXPECT_NE(ran.output.find("asks for no login"), std::string::npos) << ran.output;
  }
  for (const std::string& received : squatter->received()) {
    EXPECT_TRUE(received.starts_with("GET ")) << received;
    EXPECT_EQ(received.find("secret"), std::string::npos);
  }
}

TEST_F(LoginByDefault, the_command_line_sends_nothing_but_a_token) {
  const auto secret = dir_.path() / "id_rsa";
  std::ofstream(secret) << "-----BEGIN PRIVATE KEY-----\n";
  ASSERT_EQ(::chmod(secret.c_str(), 0600), 0);
  const auto ran = idem({"keys", "list"}, {"IDEM_ADMIN_TOKEN_FILE=" + secret.string()});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_NE(ran.output.find("holds no token of the admin API"), std::string::npos) << ran.output;
  EXPECT_EQ(ran.output.find("BEGIN"), std::string::npos);
}

TEST_F(LoginByDefault, a_start_beyond_loopback_without_a_login_is_refused) {
  const auto ran = run_program(built_program("idem"),
                               {"gateway", "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0",
                                "--upstream", "http://" + provider_->address(), "--store",
                                "memory:", "--scope", "header:X", "--trust-scope-header"});
  EXPECT_EQ(ran.exit_code, 2) << ran.output;
  EXPECT_NE(ran.output.find("no login is configured"), std::string::npos) << ran.output;
}

TEST_F(LoginByDefault, a_token_that_others_may_read_is_refused_at_the_start) {
  const auto file = dir_.path() / "loose";
  std::ofstream(file) << "idem_" + std::string(64, '0') + "\n";
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  const auto ran =
      run_program(built_program("idem"),
                  {"gateway", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream",
                   "http://" + provider_->address(), "--store", "memory:", "--scope", "header:X",
                   "--trust-scope-header", "--admin-token-file", file.string()});
  EXPECT_EQ(ran.exit_code, 1) << ran.output;
  EXPECT_NE(ran.output.find("others may read it: chmod 0600"), std::string::npos) << ran.output;
}

}  // namespace
}  // namespace idem::test
