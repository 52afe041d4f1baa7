#include <gtest/gtest.h>

#include "support/admin.hpp"
#include "support/admin_answers.hpp"

/// The console's files, and how a browser logs in and stays logged in. What it shows is tested in a
/// browser (tests/browser).
namespace idem::test {
namespace {

class Console : public Operated {
 protected:
  void SetUp() override {
    for (const auto* role : {"viewer", "operator"}) {
      const auto made = run_program(
          built_program("idem"),
          {"admin", "token", role, "--role", role, "--tokens-file", tokens_file(), "--json"});
      ASSERT_EQ(made.exit_code, 0) << made.output;
      tokens_[role] = parse_json(made.output).value_or(Json{})["token"].string;
    }
    Operated::SetUp();
  }
  std::string tokens_file() const { return (dir_.path() / "tokens").string(); }
  std::vector<std::string> flags() const override { return {"--admin-tokens", tokens_file()}; }

  Request plain(std::string method, std::string target, std::string body = {}) const {
    Request request{.method = std::move(method),
                    .target = std::move(target),
                    .fields = {{"Host", gateway_->admin()}},
                    .body = std::move(body)};
    if (request.method == "POST") request.fields.push_back({"Content-Type", "application/json"});
    return request;
  }
  /// Without the login that send_once() adds.
  Response send(const Request& request) {
    Connection connection(gateway_->admin());
    auto answer = connection.exchange(request);
    if (request.target.starts_with("/v1/")) note_answer(gateway_->admin(), request, answer);
    return answer;
  }
  Response begin(const std::string& body) { return send(plain("POST", "/v1/session", body)); }
  Response begin_as(const std::string& role) {
    return begin(R"({"token":")" + tokens_.at(role) + "\"}");
  }
  /// What a browser sends back.
  static std::string cookie_of(const Response& answer) {
    const auto set = answer.get("Set-Cookie").value_or("");
    return std::string(set.substr(0, set.find(';')));
  }
  static std::string csrf_of(const Response& answer) { return json_text(answer.body, "csrf"); }

  std::map<std::string, std::string> tokens_;
};

TEST_F(Console, a_token_begins_a_session_that_the_cookie_proves) {
  const auto begun = begin_as("viewer");
  ASSERT_EQ(begun.status, 200) << begun.raw;
  EXPECT_EQ(json_text(begun.body, "name"), "viewer");
  EXPECT_EQ(json_text(begun.body, "role"), "viewer");
  const auto set = begun.get("Set-Cookie").value_or("");
  const auto port = gateway_->admin().substr(gateway_->admin().rfind(':') + 1);
  EXPECT_TRUE(set.starts_with("__Host-idem-" + port + "=")) << set;
  EXPECT_TRUE(set.ends_with("; Path=/; Secure; HttpOnly; SameSite=Strict")) << set;
  const auto cookie = cookie_of(begun);
  EXPECT_EQ(begun.body.find(cookie.substr(cookie.find('=') + 1)), std::string::npos)
      << "no script may read the session's id";

  const auto seen = send(with(plain("GET", "/v1/session"), "Cookie", cookie));
  EXPECT_EQ(seen.status, 200);
  EXPECT_EQ(seen.body, begun.body);
  EXPECT_EQ(send(with(plain("GET", "/v1/keys"), "Cookie", "a=b; " + cookie)).status, 200);
  const auto twice = cookie + "; " + cookie;
  for (const auto& wrong : {std::string("a=b"), cookie + "0", twice}) {
    EXPECT_TRUE(
        is_problem(send(with(plain("GET", "/v1/keys"), "Cookie", wrong)), 401, "login_required"))
        << wrong;
  }
}

TEST_F(Console, a_login_needs_one_good_token_or_code) {
  EXPECT_TRUE(is_problem(begin(R"({"token":"idem_wrong"})"), 401, "login_required"));
  EXPECT_TRUE(is_problem(begin(R"({"code":"wrong"})"), 401, "login_required"));
  for (const auto* body : {"{}", "[]", "", R"({"token":""})", R"({"token":1})", R"({"code":null})",
                           R"({"token":"a","code":"b"})", R"({"token":"a","other":"b"})"}) {
    EXPECT_TRUE(is_problem(begin(body), 400, "invalid_request")) << body;
  }
  auto typeless = plain("POST", "/v1/session", R"({"token":"a"})");
  typeless.fields.pop_back();
  EXPECT_TRUE(is_problem(send(typeless), 415, "invalid_request"));
}

// The cookie alone decides nothing, whatever makes the browser send it.
TEST_F(Console, a_decision_in_a_session_repeats_its_csrf_token) {
  const auto begun = begin_as("operator");
  const auto other = begin_as("operator");
  const auto order =
      with(plain("POST", "/v1/settings/reload", R"({"reason":"x"})"), "Cookie", cookie_of(begun));
  EXPECT_EQ(send(order).status, 403);
  EXPECT_EQ(send(with(order, "Idem-Csrf", "")).status, 403);
  EXPECT_EQ(send(with(order, "Idem-Csrf", csrf_of(other))).status, 403);
  const auto good = with(order, "Idem-Csrf", csrf_of(begun));
  EXPECT_NE(send(good).status, 403);
  EXPECT_EQ(send(with(good, "Idem-Csrf", csrf_of(begun))).status, 403) << "twice";
  EXPECT_EQ(send(with(good, "Origin", "http://" + gateway_->admin())).status, send(good).status);
  for (const auto* origin : {"null", "https://evil.example", "http://localhost:1"}) {
    EXPECT_TRUE(is_problem(send(with(good, "Origin", origin)), 403, "bad_request")) << origin;
  }
  EXPECT_TRUE(is_problem(send(with(good, "Sec-Fetch-Site", "same-site")), 403, "bad_request"));
}

TEST_F(Console, a_session_has_the_role_of_its_token_and_ends_with_it) {
  const auto begun = begin_as("viewer");
  const auto order = with(with(plain("POST", "/v1/tokens", R"({"name":"eve","role":"operator"})"),
                               "Cookie", cookie_of(begun)),
                          "Idem-Csrf", csrf_of(begun));
  EXPECT_TRUE(is_problem(send(order), 403, "role_missing"));
  const auto revoked = run_program(built_program("idem"),
                                   {"admin", "revoke", "viewer", "--tokens-file", tokens_file()});
  EXPECT_EQ(revoked.exit_code, 0) << revoked.output;
  EXPECT_TRUE(is_problem(send(with(plain("GET", "/v1/session"), "Cookie", cookie_of(begun))), 401,
                         "login_required"));
}

TEST_F(Console, logging_out_ends_the_session) {
  const auto begun = begin_as("viewer");
  const auto end = with(plain("POST", "/v1/session/end", "{}"), "Cookie", cookie_of(begun));
  EXPECT_EQ(send(end).status, 403) << "another page may not log anybody out";
  const auto ended = send(with(end, "Idem-Csrf", csrf_of(begun)));
  EXPECT_EQ(ended.status, 200);
  EXPECT_TRUE(ended.get("Set-Cookie").value_or("").ends_with("; Max-Age=0"));
  EXPECT_EQ(send(with(plain("GET", "/v1/keys"), "Cookie", cookie_of(begun))).status, 401);
}

TEST_F(Console, a_new_login_ends_the_one_that_the_browser_had) {
  const auto first = begin_as("viewer");
  const auto second =
      send(with(plain("POST", "/v1/session", R"({"token":")" + tokens_.at("operator") + "\"}"),
                "Cookie", cookie_of(first)));
  ASSERT_EQ(second.status, 200) << second.raw;
  EXPECT_EQ(send(with(plain("GET", "/v1/keys"), "Cookie", cookie_of(first))).status, 401);
  EXPECT_EQ(send(with(plain("GET", "/v1/keys"), "Cookie", cookie_of(second))).status, 200);
}

// The page must not show another person than the one whose decisions count.
TEST_F(Console, a_token_beside_the_cookie_counts_and_has_no_csrf_token) {
  const auto begun = begin_as("viewer");
  const auto both = send(with(with(plain("GET", "/v1/session"), "Cookie", cookie_of(begun)),
                              "Authorization", "Bearer " + tokens_.at("operator")));
  EXPECT_EQ(json_text(both.body, "name"), "operator");
  EXPECT_NE(both.body.find("\"csrf\":null"), std::string::npos) << both.body;
}

class ConsoleBehindAProxy : public Console {
 protected:
  std::vector<std::string> flags() const override {
    return {"--admin-tokens",        tokens_file(),  "--admin-identity-field", "X-User",
            "--admin-trusted-proxy", "127.0.0.1/32", "--admin-role",           "operator=bob"};
  }
};

TEST_F(ConsoleBehindAProxy, a_browser_that_the_proxy_names_begins_no_session) {
  const auto as_bob = [](Request request) { return with(std::move(request), "X-User", "bob"); };
  const auto seen = send(as_bob(plain("GET", "/v1/session")));
  EXPECT_EQ(json_text(seen.body, "name"), "bob");
  EXPECT_NE(seen.body.find("\"csrf\":null"), std::string::npos) << seen.body;
  const auto body = R"({"token":")" + tokens_.at("viewer") + "\"}";
  EXPECT_TRUE(is_problem(send(as_bob(plain("POST", "/v1/session", body))), 409, "state_refused"));
  EXPECT_EQ(begin(body).status, 200) << "the proxy names nobody";
  EXPECT_TRUE(
      is_problem(send(as_bob(plain("POST", "/v1/session/codes", "{}"))), 400, "invalid_request"));
}

TEST_F(Console, the_command_prints_an_address_that_logs_in_once) {
  const auto ran = run_program(built_program("idem"),
                               {"console", "--json", "--admin-url", "http://" + gateway_->admin()},
                               {"IDEM_ADMIN_TOKEN=" + tokens_.at("operator")});
  ASSERT_EQ(ran.exit_code, 0) << ran.output;
  const auto url = parse_json(ran.output).value_or(Json{})["url"].string;
  const auto start = "http://" + gateway_->admin() + "/#/login?code=";
  ASSERT_TRUE(url.starts_with(start)) << url;
  const auto body = R"({"code":")" + url.substr(start.size()) + "\"}";
  const auto begun = begin(body);
  EXPECT_EQ(begun.status, 200) << begun.raw;
  EXPECT_EQ(json_text(begun.body, "name"), "operator");
  EXPECT_TRUE(is_problem(begin(body), 401, "login_required"));
  const auto other = send(with(plain("POST", "/v1/session/codes", "{}"), "Authorization",
                               "Bearer " + tokens_.at("viewer")));
  EXPECT_EQ(other.status, 200) << other.raw;
  EXPECT_EQ(json_text(begin(R"({"code":")" + json_text(other.body, "code") + "\"}").body, "name"),
            "viewer");
  // A session that could lend itself would never end.
  const auto lent =
      send(with(with(plain("POST", "/v1/session/codes", "{}"), "Cookie", cookie_of(begun)),
                "Idem-Csrf", csrf_of(begun)));
  EXPECT_TRUE(is_problem(lent, 400, "invalid_request"));
}

TEST_F(Console, its_files_allow_no_code_of_others) {
  const auto page = send(plain("GET", "/"));
  if (page.status == 404) GTEST_SKIP() << "built without the console";
  ASSERT_EQ(page.status, 200) << page.raw;
  EXPECT_EQ(page.get("Content-Encoding"), "gzip");
  EXPECT_EQ(page.get("Cache-Control"), "no-cache");
  EXPECT_EQ(page.get("X-Content-Type-Options"), "nosniff");
  const auto policy = page.get("Content-Security-Policy").value_or("");
  EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'self';")) << policy;
  EXPECT_NE(policy.find("frame-ancestors 'none'"), policy.npos);
  EXPECT_EQ(policy.find("unsafe"), policy.npos);
  // A link on another page may lead here; the answers of the API stay closed to it.
  EXPECT_EQ(send(with(plain("GET", "/?x=1"), "Sec-Fetch-Site", "cross-site")).status, 200);
  EXPECT_EQ(send(with(plain("GET", "/v1/session"), "Sec-Fetch-Site", "cross-site")).status, 403);
  EXPECT_EQ(send(plain("POST", "/", "{}")).status, 405);
  EXPECT_TRUE(is_problem(send(plain("GET", "/assets/nothing.js")), 404, "not_found"));
  const auto foreign = send({.method = "GET", .target = "/", .fields = {{"Host", "evil.example"}}});
  EXPECT_TRUE(is_problem(foreign, 400, "bad_request")) << "no other name leads here";
}

}  // namespace
}  // namespace idem::test
