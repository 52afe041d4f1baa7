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

  /// Sends each operation with each login and compares with its role.
  template <class Send>
  void compare_all(const Send& send, bool probes_are_open) {
    int count = 0;
    for (const AdminOperation& one : admin_operations()) {
      const bool is_a_login = one.method == "POST" && one.path == "/v1/session";
      if (is_a_login) continue;  // console_test.cpp
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
    EXPECT_GE(count, 95);
    RecordProperty("requests", count);
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
  compare_all([&](Request request,
                  const std::string& has) { return over_tcp(as(std::move(request), has)); },
              true);
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
  // A line that an operator wrote by hand must not open the API to all.
  std::ofstream(tokens_file(), std::ios::app)
      << "nobody operator e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 "
         "2026-11-21T00:00:00Z\n";
  EXPECT_EQ(status_of("Bearer "), 401);
  EXPECT_EQ(status_of("Bearer " + token), 200);
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

// A client may send the body of an order for half an hour.
TEST_F(LoginByToken, a_token_that_is_revoked_while_an_order_comes_does_nothing) {
  const std::string body = R"({"name":"mallory","role":"operator"})";
  auto order = as(plain("POST", "/v1/tokens"), "operator");
  order.body.clear();
  order = with(order, "Content-Length", std::to_string(body.size()));
  Connection slow(gateway_->admin());
  ASSERT_TRUE(slow.send_raw(to_wire(with(order, "Expect", "100-continue"))));
  std::string invited;
  ASSERT_EQ(slow.socket().receive(invited), Socket::Received::bytes);
  EXPECT_TRUE(invited.starts_with("HTTP/1.1 100 ")) << "the login was good: " << invited;
  ASSERT_EQ(run_program(built_program("idem"),
                        {"admin", "revoke", "operator", "--tokens-file", tokens_file()})
                .exit_code,
            0);
  ASSERT_TRUE(slow.send_raw(body));
  const auto refused = slow.read_response();
  EXPECT_TRUE(is_problem(refused, 401, "login_required")) << refused.raw;
  EXPECT_EQ(read_file(tokens_file()).find("mallory"), std::string::npos);
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
  compare_all([&](Request request,
                  const std::string& has) { return over_tls(as(std::move(request), has)); },
              false);
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
  compare_all([&](Request request,
                  const std::string& has) { return over_tcp(as(std::move(request), has)); },
              true);
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
          std::string("viewer=subject:CN=viewer"), std::string("--admin-role"),
          std::string("support=subject:CN=support"), std::string("--admin-role"),
          std::string("operator=subject:CN=operator")}) {
      all.push_back(flag);
    }
    return all;
  }
};

TEST_F(LoginByCertificate, each_endpoint_needs_its_role) {
  compare_all(
      [&](const Request& request, const std::string& has) {
        if (has.empty()) return over_tls(request);
        return over_tls(request, certificates_.at(has == "wrong" ? "nobody" : has));
      },
      true);
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

TEST_F(LoginByCertificate, only_the_whole_name_of_its_kind_has_the_role) {
  const auto status_of = [&](const Authority::Holder& holder) {
    return over_tls(plain("GET", "/v1/tokens"), operators_->issue(holder)).status;
  };
  EXPECT_EQ(status_of({.common_name = "operator"}), 404) << "no file of tokens, but the role";
  EXPECT_EQ(status_of({.common_name = "operator2"}), 403);
  EXPECT_EQ(status_of({.common_name = "operator " + std::string(50, 'x')}), 403);
  EXPECT_EQ(status_of({.common_name = "", .other_names = {"URI:CN=operator"}}), 403);
  EXPECT_EQ(status_of({.common_name = "operator", .other_names = {"URI:spiffe://x/y"}}), 403)
      << "the URI is its name";
}

TEST_F(LoginByCertificate, one_of_another_authority_is_no_login) {
  const auto foreign = authority_->issue({.common_name = "operator"});
  EXPECT_EQ(over_tls(plain("GET", "/v1/keys"), foreign).status, 0) << "the handshake fails";
}

}  // namespace
}  // namespace idem::test
