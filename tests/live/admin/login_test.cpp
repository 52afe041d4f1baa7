#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/admin.hpp"
#include "support/admin_page.hpp"
#include "support/certificates.hpp"

/// Who may do what on the admin listener.
namespace idem::test {
namespace {

constexpr std::string_view roles[] = {"viewer", "support", "operator"};

bool is_enough(std::string_view has, std::string_view needs) {
  const auto rank = [](std::string_view role) {
    return role == "operator" ? 3 : role == "support" ? 2 : role == "viewer" ? 1 : 0;
  };
  return rank(has) >= rank(needs);
}

/// A gateway whose admin listener has a certificate or none, and logins by token, proxy or
/// certificate.
class Login : public Operated {
 protected:
  void SetUp() override {
    authority_ = std::make_unique<Authority>(dir_.path() / "pki", "server-ca");
    operators_ = std::make_unique<Authority>(dir_.path() / "pki", "operators-ca");
    served_ = authority_->issue({.common_name = "admin", .other_names = {"DNS:localhost"}});
    for (const auto role : roles) {
      const auto name = std::string(role);
      tokens_[name] = make_token(name, name);
      certificates_[name] = operators_->issue({.common_name = name});
    }
    certificates_["nobody"] = operators_->issue({.common_name = "nobody"});
    Operated::SetUp();
  }

  std::string tokens_file() const { return (dir_.path() / "tokens").string(); }
  std::string make_token(const std::string& name, const std::string& role) {
    const auto made = run_program(
        built_program("idem"),
        {"admin", "token", name, "--role", role, "--tokens-file", tokens_file(), "--json"});
    EXPECT_EQ(made.exit_code, 0) << made.output;
    return parse_json(made.output).value_or(Json{})["token"].string;
  }

  std::vector<std::string> tls_flags() const {
    return {"--admin-tls-cert", served_.certificate, "--admin-tls-key", served_.key};
  }
  std::vector<std::string> token_flags() const { return {"--admin-tokens", tokens_file()}; }

  Request plain(std::string method, std::string target) const {
    Request request{.method = std::move(method), .target = std::move(target)};
    request.fields.push_back({"Host", "localhost"});
    if (request.method == "POST") {
      request.fields.push_back({"Content-Type", "application/json"});
      request.body = "{}";
    }
    return request;
  }
  /// Without the login that send_once() adds.
  Response over_tcp(const Request& request) {
    Connection connection(gateway_->admin());
    auto response = connection.exchange(request);
    return response;
  }
  Response over_tls(const Request& request, const Authority::Files& files = {}) {
    const TlsSide side{.certificate = files.certificate,
                       .key = files.key,
                       .ca = authority_->file(),
                       .host = "localhost"};
    return send_once(gateway_->admin(), side, request);
  }

  /// Sends each operation with each login and compares with its role; the number of requests.
  template <class Send>
  int compare_all(const Send& send, bool probes_are_open) {
    int count = 0;
    for (const AdminOperation& one : admin_operations()) {
      for (const std::string_view has : {"", "wrong", "viewer", "support", "operator"}) {
        std::string target = one.path;
        for (const auto* braced : {"{ref}", "{id}", "{name}"}) {
          const auto start = target.find(braced);
          if (start != target.npos) target.replace(start, std::string(braced).size(), ref);
        }
        const Response answer = send(plain(one.method, target), std::string(has));
        ++count;
        const auto shown =
            fmt::format("{} {} as \"{}\": {}", one.method, one.path, has, answer.raw);
        if (one.is_open && probes_are_open) {
          EXPECT_EQ(answer.status, 200) << shown;
        } else if (!is_enough(has, "viewer")) {
          EXPECT_TRUE(answer.status == 401 || (has == "wrong" && answer.status == 403)) << shown;
          EXPECT_EQ(answer.body.find("idem_reserve"), std::string::npos) << shown;
        } else if (is_enough(has, one.role)) {
          EXPECT_NE(answer.status, 0) << shown;
          EXPECT_NE(answer.status, 401) << shown;
          EXPECT_NE(answer.status, 403) << shown;
        } else {
          EXPECT_TRUE(is_problem(answer, 403, "role_missing")) << shown;
        }
      }
    }
    return count;
  }

  static constexpr const char* ref = "00112233445566778899aabbccddeeff";
  std::unique_ptr<Authority> authority_;
  std::unique_ptr<Authority> operators_;
  Authority::Files served_{};
  std::map<std::string, std::string> tokens_;
  std::map<std::string, Authority::Files> certificates_;
};

class LoginByToken : public Login {
 protected:
  std::vector<std::string> flags() const override { return token_flags(); }
  Request as(Request request, const std::string& has) {
    if (has.empty()) return request;
    const auto token = has == "wrong" ? "idem_" + std::string(64, '0') : tokens_.at(has);
    return with(std::move(request), "Authorization", "Bearer " + token);
  }
};

TEST_F(LoginByToken, each_endpoint_needs_its_role) {
  const int count =
      compare_all([&](Request request,
                      const std::string& has) { return over_tcp(as(std::move(request), has)); },
                  true);
  EXPECT_GE(count, 95);
  RecordProperty("requests", count);
}

TEST_F(LoginByToken, other_ways_to_write_a_login_are_none) {
  const auto& token = tokens_.at("operator");
  const auto status_of = [&](std::string_view value) {
    return over_tcp(with(plain("GET", "/v1/keys"), "Authorization", value)).status;
  };
  EXPECT_EQ(status_of("Bearer " + token), 200);
  EXPECT_EQ(status_of("bearer   " + token), 200);
  for (const std::string& value :
       {token, "Basic " + token, "Bearer " + token + " x", std::string("Bearer"),
        "Bearer " + token.substr(1), "Bearer" + token,
        std::string("Bearer ") + token + "," + token}) {
    EXPECT_EQ(status_of(value), 401) << value;
  }
  auto twice = with(plain("GET", "/v1/keys"), "Authorization", "Bearer " + token);
  twice = with(twice, "Authorization", "Bearer " + token);
  EXPECT_EQ(over_tcp(twice).status, 401);
  const auto in_query = over_tcp(plain("GET", "/v1/keys?token=" + token));
  EXPECT_EQ(in_query.status, 401);
  EXPECT_EQ(in_query.get("WWW-Authenticate"), "Bearer realm=\"idem\"");
  EXPECT_EQ(gateway_->process().output().find(token), std::string::npos) << "nor in the log";
}

TEST_F(LoginByToken, a_path_spelt_in_another_way_opens_nothing) {
  for (const char* path :
       {"/v1/keys/../tokens", "/v1//tokens", "/V1/tokens", "/v1/tokens/", "/v1/%74okens",
        "/v1/tokens;x", "/livez/../v1/tokens", "/livez?/v1/tokens"}) {
    const auto viewer = over_tcp(as(plain("GET", path), "viewer"));
    EXPECT_EQ(viewer.body.find("\"tokens\""), std::string::npos) << path << viewer.raw;
    const auto nobody = over_tcp(plain("GET", path));
    EXPECT_EQ(nobody.body.find("\"tokens\""), std::string::npos) << path << nobody.raw;
  }
}

TEST_F(LoginByToken, a_revoked_token_is_refused_at_once_and_no_other_one) {
  const auto get_as = [&](const std::string& has) {
    return over_tcp(as(plain("GET", "/v1/status"), has)).status;
  };
  EXPECT_EQ(get_as("viewer"), 200);
  const auto revoked = run_program(built_program("idem"),
                                   {"admin", "revoke", "viewer", "--reason", "lost", "--admin-url",
                                    "http://" + gateway_->admin()},
                                   {"IDEM_ADMIN_TOKEN=" + tokens_.at("operator")});
  EXPECT_EQ(revoked.exit_code, 0) << revoked.output;
  EXPECT_EQ(get_as("viewer"), 401);
  EXPECT_EQ(get_as("support"), 200);
  EXPECT_TRUE(gateway_->process().wait_for_line(
      "admin_token_revoked name=viewer source=operator:operator reason=lost"));
  const auto again = run_program(built_program("idem"),
                                 {"admin", "revoke", "viewer", "--reason", "lost", "--admin-url",
                                  "http://" + gateway_->admin()},
                                 {"IDEM_ADMIN_TOKEN=" + tokens_.at("operator")});
  EXPECT_EQ(again.exit_code, 4) << again.output;
}

TEST_F(LoginByToken, the_name_of_the_login_decides_whatever_a_field_says) {
  const auto unknown = ask(charge("k", "drop-after"));
  ASSERT_EQ(unknown.status, 502) << unknown.raw;
  auto listing = over_tcp(as(plain("GET", "/v1/keys"), "viewer"));
  const Json page = parse_json(listing.body).value_or(Json{});
  ASSERT_EQ(page["keys"].items.size(), 1U) << listing.raw;
  const std::string id = page["keys"].items[0]["ref"].string;
  auto order = as(plain("POST", "/v1/keys/" + id + "/resolve"), "operator");
  order = with(order, "Idem-Operator", "mallory");
  order.body = R"({"as":"completed","fence":1,"evidence":"seen","reason":"T-1",
      "response":{"status":201,"headers":[],"body_b64":""},"by":"mallory"})";
  EXPECT_EQ(over_tcp(order).status, 400) << "the body names another one";
  order.body.replace(order.body.find(",\"by\""), std::string(",\"by\":\"mallory\"").size(), "");
  const auto done = over_tcp(order);
  ASSERT_EQ(done.status, 200) << done.raw;
  EXPECT_NE(done.body.find("\"source\":\"operator:operator\""), std::string::npos) << done.body;
  EXPECT_EQ(done.body.find("mallory"), std::string::npos);
}

TEST_F(LoginByToken, a_viewer_sees_no_body_no_field_no_evidence_and_finds_by_no_key) {
  auto request = charge("key-of-the-canary", {}, R"({"amount":7,"note":"body-of-the-canary"})");
  ASSERT_EQ(ask(request).status, 201);
  const auto listing = over_tcp(as(plain("GET", "/v1/keys"), "viewer"));
  const Json page = parse_json(listing.body).value_or(Json{});
  ASSERT_EQ(page["keys"].items.size(), 1U) << listing.raw;
  const std::string path = "/v1/keys/" + page["keys"].items[0]["ref"].string;
  const auto seen = parse_json(over_tcp(as(plain("GET", path), "viewer")).body).value_or(Json{});
  EXPECT_EQ(seen["response"]["status"].integer, 201);
  EXPECT_EQ(seen["response"]["headers"].kind, Json::Kind::null);
  EXPECT_EQ(seen["response"]["body_b64"].kind, Json::Kind::null);
  const auto read = parse_json(over_tcp(as(plain("GET", path), "support")).body).value_or(Json{});
  EXPECT_FALSE(read["response"]["headers"].items.empty());
  EXPECT_FALSE(read["response"]["body_b64"].string.empty());
  for (const auto* query : {"?scope=acme&operation=POST+/charges&key=key-of-the-canary",
                            "?value=/amount", "?value=/amount&state=completed"}) {
    const auto target = std::string("/v1/keys") + query;
    EXPECT_TRUE(is_problem(over_tcp(as(plain("GET", target), "viewer")), 403, "role_missing"));
    EXPECT_EQ(over_tcp(as(plain("GET", target), "support")).status, 200) << target;
  }
  for (const auto role : roles) {
    for (const auto* target : {"/v1/status", "/metrics", "/v1/keys"}) {
      const auto raw = over_tcp(as(plain("GET", target), std::string(role))).raw;
      EXPECT_EQ(raw.find("of-the-canary"), std::string::npos) << role << target;
    }
  }
}

TEST_F(LoginByToken, a_broken_file_of_tokens_lets_nobody_in_and_the_log_says_why) {
  std::ofstream(tokens_file(), std::ios::app) << "half a line\n";
  const auto refused = over_tcp(as(plain("GET", "/v1/keys"), "operator"));
  EXPECT_TRUE(is_problem(refused, 401, "login_required")) << refused.raw;
  EXPECT_NE(refused.body.find("its log says why"), std::string::npos);
  EXPECT_EQ(refused.body.find("half"), std::string::npos);
  EXPECT_TRUE(gateway_->process().wait_for_line("error admin_refused"));
  EXPECT_TRUE(gateway_->process().wait_for_line("line 5: the role is viewer, support or operator"));
  EXPECT_EQ(over_tcp(plain("GET", "/livez")).status, 200);
}

class LoginOverTls : public LoginByToken {
 protected:
  std::vector<std::string> flags() const override {
    auto all = token_flags();
    for (auto& flag : tls_flags()) all.push_back(flag);
    all.insert(all.end(), {"--admin-probes", "nowhere"});
    return all;
  }
};

TEST_F(LoginOverTls, each_endpoint_needs_its_role_the_probes_too) {
  const int count =
      compare_all([&](Request request,
                      const std::string& has) { return over_tls(as(std::move(request), has)); },
                  false);
  EXPECT_GE(count, 95);
  RecordProperty("requests", count);
  EXPECT_NE(over_tcp(as(plain("GET", "/v1/keys"), "operator")).status, 200) << "and no plain HTTP";
}

TEST_F(LoginOverTls, the_command_line_checks_the_certificate) {
  const auto keys = [&](std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"keys", "list", "--admin-url",
                  "https://localhost" + gateway_->admin().substr(gateway_->admin().rfind(':'))});
    return run_program(built_program("idem"), words, {"IDEM_ADMIN_TOKEN=" + tokens_.at("support")});
  };
  EXPECT_EQ(keys({"--admin-ca", authority_->file()}).exit_code, 0);
  const auto distrusted = keys({"--admin-ca", operators_->file()});
  EXPECT_EQ(distrusted.exit_code, 3) << distrusted.output;
  EXPECT_EQ(keys({}).exit_code, 3) << "the system's authorities did not sign it";
}

class LoginByProxy : public Login {
 protected:
  std::vector<std::string> flags() const override {
    return {"--admin-identity-field", "X-Forwarded-User",      "--admin-groups-field",
            "X-Forwarded-Groups",     "--admin-trusted-proxy", "127.0.0.1/32",
            "--admin-role",           "viewer=viewer",         "--admin-role",
            "support=group:helpdesk", "--admin-role",          "viewer=group:helpdesk",
            "--admin-role",           "operator=operator",     "--admin-role",
            "operator=group:oncall",  "--admin-tokens",        tokens_file()};
  }
  static Request as(Request request, const std::string& has) {
    if (has.empty()) return request;
    request = with(std::move(request), "X-Forwarded-User", has == "support" ? "sue" : has);
    if (has == "support") request = with(request, "X-Forwarded-Groups", "staff, helpdesk");
    return request;
  }
};

TEST_F(LoginByProxy, each_endpoint_needs_its_role) {
  const int count =
      compare_all([&](Request request,
                      const std::string& has) { return over_tcp(as(std::move(request), has)); },
                  true);
  EXPECT_GE(count, 95);
  RecordProperty("requests", count);
}

TEST_F(LoginByProxy, only_the_trusted_proxy_names_anybody) {
  const auto from = [&](std::string_view address, const Request& request) {
    Connection connection(gateway_->admin(), address);
    return connection.exchange(request).status;
  };
  const auto request = as(plain("GET", "/v1/keys"), "operator");
  EXPECT_EQ(from("127.0.0.1", request), 200);
  EXPECT_EQ(from("127.0.0.2", request), 401) << "a field from elsewhere names nobody";
  const auto token =
      with(plain("GET", "/v1/keys"), "Authorization", "Bearer " + tokens_.at("viewer"));
  EXPECT_EQ(from("127.0.0.2", token), 200) << "but its token counts";
  EXPECT_EQ(from("127.0.0.1", with(request, "X-Forwarded-User", "viewer")), 401) << "two names";
  EXPECT_EQ(from("127.0.0.1", as(plain("GET", "/v1/keys"), "mallory")), 403);
  EXPECT_EQ(from("127.0.0.1", as(plain("GET", "/v1/keys"), "group:oncall")), 403) << "no group";
  const auto lifted = with(as(plain("GET", "/v1/tokens"), "viewer"), "Authorization",
                           "Bearer " + tokens_.at("operator"));
  EXPECT_EQ(from("127.0.0.1", lifted), 403) << "the proxy's name counts before a token";
}

class LoginByCertificate : public Login {
 protected:
  std::vector<std::string> flags() const override {
    auto all = tls_flags();
    for (const std::string& flag :
         {std::string("--admin-client-ca"), operators_->file(), std::string("--admin-role"),
          std::string("viewer=CN=viewer"), std::string("--admin-role"),
          std::string("support=CN=support"), std::string("--admin-role"),
          std::string("operator=CN=operator")}) {
      all.push_back(flag);
    }
    return all;
  }
};

TEST_F(LoginByCertificate, each_endpoint_needs_its_role) {
  const int count = compare_all(
      [&](const Request& request, const std::string& has) {
        if (has.empty()) return over_tls(request);
        return over_tls(request, certificates_.at(has == "wrong" ? "nobody" : has));
      },
      true);
  EXPECT_GE(count, 95);
  RecordProperty("requests", count);
}

TEST_F(LoginByCertificate, the_command_line_presents_one) {
  const auto& files = certificates_.at("support");
  const auto ran =
      run_program(built_program("idem"),
                  {"keys", "list", "--admin-ca", authority_->file(), "--admin-cert",
                   files.certificate, "--admin-key", files.key, "--admin-url",
                   "https://localhost" + gateway_->admin().substr(gateway_->admin().rfind(':'))});
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
}

TEST_F(LoginByCertificate, one_of_another_authority_is_no_login) {
  const auto foreign = authority_->issue({.common_name = "operator"});
  EXPECT_EQ(over_tls(plain("GET", "/v1/keys"), foreign).status, 0) << "the handshake fails";
}

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

// Who listens in the gateway's place must not get another file of this user.
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
