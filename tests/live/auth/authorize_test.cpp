#include <gtest/gtest.h>

#include "support/certificates.hpp"
#include "support/moved_clock.hpp"
#include "support/scripted_live.hpp"

/// The subrequest that decides, before the reserve and before a replay, whether a caller may go on.
namespace idem::test {
namespace {

class Authorize : public Scripted {
 protected:
  void TearDown() override {
    Scripted::TearDown();
    authoriser_.reset();
  }

  /// Every question is answered by `says_`, whole and in HTTP.
  void start_asking(std::vector<std::string> flags = {}, GatewayOptions options = {}) {
    authoriser_ = std::make_unique<ScriptedUpstream>([this](UpstreamConnection& connection) {
      while (connection.read_request()) {
        const std::string answer = says_.get();
        if (answer.empty() || !connection.write(answer)) return;
      }
    });
    flags.insert(flags.end(), {"--authorize-url", "http://" + authoriser_->address() + "/check?a=b",
                               "--authorize-timeout", "2s"});
    start(script_, std::move(flags), std::move(options));
  }
  void say(int status, std::string_view fields = {}, std::string_view body = {}) {
    says_.set("HTTP/1.1 " + std::to_string(status) +
              " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
              std::string(fields) + "\r\n" + std::string(body));
  }
  std::string asked() {
    std::string all;
    for (const auto& bytes : authoriser_->received()) all += bytes;
    return all;
  }
  static bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
  }

  ScriptedUpstream::Script script_ = &ScriptedUpstream::answer_all;
  SharedText says_;
  std::unique_ptr<ScriptedUpstream> authoriser_;
};

TEST_F(Authorize, T34_V35_a_revoked_caller_gets_no_replay) {
  start_asking();
  say(204);
  EXPECT_EQ(ask(charge("k")).status, 200);
  EXPECT_EQ(ask(charge("k")).get("Idempotent-Replayed"), "true");
  say(403, "Content-Type: text/plain\r\n", "revoked");
  const auto refused = ask(charge("k"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.body, "revoked");
  EXPECT_FALSE(refused.get("Idempotent-Replayed"));
  EXPECT_FALSE(refused.get("Idempotency-Outcome"));
  const auto unknown = ask(charge("never-used"));
  EXPECT_EQ(unknown.body, refused.body) << "nor does it learn whether the key was used";
  say(200, "", "yes");
  EXPECT_EQ(ask(charge("k")).get("Idempotent-Replayed"), "true");
  EXPECT_EQ(upstream_->requests(), 1);
  EXPECT_EQ(authoriser_->requests(), 5);
}

TEST_F(Authorize, T34_V35_nothing_is_reserved_for_a_refused_caller) {
  start_asking();
  say(401, "WWW-Authenticate: Bearer realm=\"pay\"\r\nSet-Cookie: a=b\r\n", "who?");
  const auto refused = ask(charge("k"));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.body, "who?");
  EXPECT_EQ(refused.get("WWW-Authenticate"), "Bearer realm=\"pay\"");
  EXPECT_EQ(refused.get("Cache-Control"), "no-store");
  EXPECT_FALSE(refused.get("Set-Cookie"));
  say(200);
  const auto other = charge("k", {}, R"({"amount":2})");
  const auto first = ask(other);
  EXPECT_EQ(first.status, 200) << "the refused body left no fingerprint behind";
  EXPECT_FALSE(first.get("Idempotent-Replayed"));
  EXPECT_EQ(upstream_->requests(), 1);
}

TEST_F(Authorize, S06_it_is_asked_with_the_callers_credentials_and_without_key_or_body) {
  start_asking();
  say(200);
  auto request = with(with(charge("secret-key"), "Authorization", "Bearer tok"), "Cookie", "s=1");
  request = with(with(request, "X-Original-URI", "/admin"), "Idem-Scope", "globex");
  request = with(with(request, "Host", "shop.example"), "X-Original-Host", "admin.example");
  request.target = "/charges?x=%2F";
  EXPECT_EQ(ask(request).status, 200);
  const std::string head = asked();
  EXPECT_TRUE(head.starts_with("GET /check?a=b HTTP/1.1\r\n")) << head;
  for (const auto* part :
       {"Authorization: Bearer tok\r\n", "Cookie: s=1\r\n", "X-Tenant-Id: acme\r\n",
        "X-Original-Method: POST\r\n", "X-Original-URI: /charges?x=%2F\r\n",
        "X-Original-Host: shop.example\r\n", "Idem-Scope: acme\r\n"}) {
    EXPECT_TRUE(contains(head, part)) << part << head;
  }
  for (const auto* part :
       {"secret-key", "amount", "/admin", "admin.example", "globex", "Content-Length"}) {
    EXPECT_FALSE(contains(head, part)) << part << head;
  }
  const auto odd = with(without(charge("odd"), "X-Tenant-Id"), "X-Tenant-Id", "a b%\xC3\xBC");
  EXPECT_EQ(ask(odd).status, 200);
  EXPECT_TRUE(contains(asked(), "Idem-Scope: a%20b%25%C3%BC\r\n")) << asked();
  EXPECT_TRUE(contains(head, "Host: " + authoriser_->address() + "\r\n"));
}

TEST_F(Authorize, S06_S08_it_learns_the_method_that_a_request_asks_for) {
  start_asking({"--allow-method-override"});
  say(200);
  EXPECT_EQ(ask(with(charge("k"), "X-HTTP-Method-Override", "delete")).status, 200);
  EXPECT_TRUE(
      contains(asked(), "X-Original-Method: POST\r\nX-Original-Method-Override: DELETE\r\n"))
      << asked();
}

TEST_F(Authorize, S06_S08_an_override_adds_no_line_to_the_question) {
  start_asking();
  say(200);
  const std::string ref = "00112233445566778899aabbccddeeff";
  Request look_up{
      .method = "GET",
      .target = "/.idem/operations/" + ref + "?_method=X%0d%0aIdem-Scope:%20globex%0d%0aY:z",
      .fields = {{"X-Tenant-Id", "acme"}}};
  EXPECT_EQ(ask(look_up).status, 404);
  ASSERT_TRUE(contains(asked(), "X-Original-URI: /.idem/operations/" + ref)) << asked();
  EXPECT_FALSE(contains(asked(), "X-Original-Method-Override")) << asked();
  EXPECT_FALSE(contains(asked(), "IDEM-SCOPE")) << asked();
}

// A login of a connection (NTLM, Negotiate) would be the next caller's.
TEST_F(Authorize, P23_a_connection_that_is_logged_in_asks_about_nobody_else) {
  start_asking({"--keepalive-idle", "60s"});
  say(204);
  EXPECT_EQ(ask(charge("a")).status, 200);
  EXPECT_EQ(ask(charge("b")).status, 200);
  EXPECT_EQ(authoriser_->connections(), 1);
  EXPECT_EQ(ask(with(charge("c"), "Authorization", "Negotiate alice")).status, 200);
  EXPECT_EQ(authoriser_->connections(), 1);
  EXPECT_EQ(ask(charge("d")).status, 200);
  EXPECT_EQ(authoriser_->connections(), 2);
  say(401, "WWW-Authenticate: NTLM\r\n");
  EXPECT_EQ(ask(charge("e")).status, 401);
  EXPECT_EQ(ask(charge("f")).status, 401);
  EXPECT_EQ(authoriser_->connections(), 3);
}

TEST_F(Authorize, S06_unkeyed_requests_and_callers_without_a_scope_do_not_ask) {
  start_asking();
  say(403);
  EXPECT_EQ(ask({.method = "GET", .target = "/x"}).status, 200);
  EXPECT_TRUE(is_problem(ask(without(charge("k"), "X-Tenant-Id")), 401, "scope_missing"));
  EXPECT_EQ(authoriser_->requests(), 0);
  EXPECT_EQ(ask(without(charge("k"), "Idempotency-Key")).status, 403) << "before the key is read";
}

TEST_F(Authorize, S06_anything_but_a_clear_answer_fails_closed) {
  start_asking();
  const std::string answers[] = {
      "HTTP/1.1 302 X\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 429 X\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 407 X\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 200",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "nonsense\r\n\r\n",
      "",
  };
  for (const auto& answer : answers) {
    says_.set(answer);
    const auto refused = ask(charge("k"));
    EXPECT_TRUE(is_problem(refused, 503, "store_unavailable")) << answer;
    EXPECT_EQ(json_text(refused.body, "retry"), "same_key");
    EXPECT_TRUE(refused.get("Retry-After"));
  }
  EXPECT_EQ(upstream_->requests(), 0);
  authoriser_.reset();
  EXPECT_TRUE(is_problem(ask(charge("k")), 503, "store_unavailable")) << "nobody is there";
}

TEST_F(Authorize, S06_an_authoriser_that_never_answers_is_given_up) {
  authoriser_ = std::make_unique<ScriptedUpstream>([](UpstreamConnection& connection) {
    connection.read_request();
    while (connection.read_some()) {
    }
  });
  start(&ScriptedUpstream::answer_all, {"--authorize-url", "http://" + authoriser_->address() + "/",
                                        "--authorize-timeout", "150ms"});
  EXPECT_TRUE(is_problem(ask(charge("k")), 503, "store_unavailable"));
  EXPECT_EQ(upstream_->requests(), 0);
}

TEST_F(Authorize, S06_a_kept_connection_that_died_is_replaced) {
  authoriser_ = std::make_unique<ScriptedUpstream>([](UpstreamConnection& connection) {
    if (!connection.read_request()) return;
    connection.write("HTTP/1.1 204 OK\r\n\r\n");
    if (connection.index() == 0) connection.read_request();  // And is gone without an answer.
  });
  start(&ScriptedUpstream::answer_all,
        {"--keepalive-idle", "60s", "--authorize-url", "http://" + authoriser_->address() + "/"});
  EXPECT_EQ(ask(charge("1")).status, 200);
  EXPECT_EQ(ask(charge("2")).status, 200);
  EXPECT_EQ(authoriser_->connections(), 2);
}

TEST_F(Authorize, S06_a_large_refusal_is_passed_on_without_its_body) {
  start_asking();
  say(403, "", std::string(100'000, 'x'));
  const auto refused = ask(charge("k"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.body, "");
}

// The one would look at the first line, the other at the last.
TEST_F(Authorize, T34_two_lines_of_one_credential_are_refused) {
  start_asking();
  say(200);
  const auto once = with(with(charge("k"), "Authorization", "Bearer a"), "Cookie", "s=1");
  EXPECT_TRUE(is_problem(ask(with(once, "authorization", "Bearer b")), 400, "bad_request"));
  EXPECT_TRUE(is_problem(ask(with(once, "cookie", "s=2")), 400, "bad_request"));
  EXPECT_EQ(authoriser_->requests(), 0);
}

TEST_F(Authorize, P14_connection_cannot_remove_the_credential) {
  start_asking();
  say(200);
  const auto asking = with(with(charge("k"), "Authorization", "Bearer a"), "Cookie", "s=1");
  for (const auto* option : {"authorization", "Cookie", "X-Tenant-Id"}) {
    EXPECT_TRUE(is_problem(ask(with(asking, "Connection", option)), 400, "bad_request")) << option;
  }
  EXPECT_EQ(upstream_->requests(), 0);
}

TEST_F(Authorize, V35_a_yes_is_kept_only_where_that_was_asked_for_and_for_the_same_question) {
  start_asking({"--authorize-cache", "60s"});
  say(200);
  const auto asking = with(charge("k"), "Authorization", "Bearer a");
  EXPECT_EQ(ask(asking).status, 200);
  EXPECT_EQ(ask(asking).get("Idempotent-Replayed"), "true");
  EXPECT_EQ(authoriser_->requests(), 1);
  say(403);
  const auto other_host = with(asking, "Host", "other.example");
  auto other_path = asking;
  other_path.target = "/refunds";
  auto other_method = asking;
  other_method.method = "PUT";
  const auto other_tenant = with(without(asking, "X-Tenant-Id"), "X-Tenant-Id", "globex");
  for (const auto& other : {with(without(asking, "Authorization"), "Authorization", "Bearer b"),
                            without(asking, "Authorization"), with(asking, "Cookie", "s=1"),
                            other_path, other_method, other_tenant, other_host}) {
    EXPECT_EQ(ask(other).status, 403);
  }
  EXPECT_EQ(authoriser_->requests(), 8);
  EXPECT_EQ(ask(asking).get("Idempotent-Replayed"), "true") << "still the same question";
  EXPECT_EQ(authoriser_->requests(), 8);
}

TEST_F(Authorize, V35_a_no_is_never_kept) {
  start_asking({"--authorize-cache", "60s"});
  say(403);
  EXPECT_EQ(ask(charge("k")).status, 403);
  say(500);
  EXPECT_EQ(ask(charge("k")).status, 503);
  say(200);
  EXPECT_EQ(ask(charge("k")).status, 200);
  EXPECT_EQ(authoriser_->requests(), 3);
}

/// Time passes between the yes and what it is for.
class LongAfterTheYes : public Authorize {
 protected:
  void SetUp() override { IDEM_NEED_PROGRAM("idem-crash"); }

  void begin(std::vector<std::string> flags = {}) {
    start_asking(std::move(flags),
                 {.environment = {clock_.environment()}, .program = "idem-crash"});
    say(204);
  }
  /// A request that has had its yes, because its body was invited, and is not there in whole.
  Connection begun(std::string_view key) {
    Connection connection(gateway_->address());
    const auto wire = to_wire(with(charge(key), "Expect", "100-continue"));
    EXPECT_TRUE(connection.send_raw(std::string_view(wire).substr(0, wire.size() - 1)));
    std::string invited;
    EXPECT_TRUE(read_until(connection.socket(), invited, "100 Continue\r\n\r\n"));
    return connection;
  }
  static void finish(Connection& connection) {
    const auto wire = to_wire(charge(""));
    EXPECT_TRUE(connection.send_raw(wire.substr(wire.size() - 1)));
  }
  void revoke() {
    say(403, "", "revoked");
    clock_.pass(2);
  }
  static void expect_revoked(const Response& answer) {
    EXPECT_EQ(answer.status, 403) << answer.raw;
    EXPECT_EQ(answer.body, "revoked");
    EXPECT_FALSE(answer.get("Idempotent-Replayed"));
  }

  MovedClock clock_;
};

TEST_F(LongAfterTheYes, T34_V35_a_slow_body_does_not_outlive_it) {
  ASSERT_NO_FATAL_FAILURE(begin());
  EXPECT_EQ(ask(charge("done")).status, 200);
  auto replay = begun("done");
  auto fresh = begun("new");
  revoke();
  finish(replay);
  expect_revoked(replay.read_response());
  finish(fresh);
  expect_revoked(fresh.read_response());
  EXPECT_EQ(upstream_->requests(), 1) << "nothing ran for who was revoked";
  say(204);
  EXPECT_FALSE(ask(charge("new", {}, "another body")).get("Idempotent-Replayed"));
}

TEST_F(LongAfterTheYes, T34_V35_a_wait_does_not_outlive_it) {
  Gate gate;
  script_ = [&gate](UpstreamConnection& connection) {
    if (connection.read_request() && gate.wait()) connection.write_answer("secret");
  };
  ASSERT_NO_FATAL_FAILURE(begin({"--mode", "wait", "--wait-max", "5m"}));
  Connection first(gateway_->address());
  ASSERT_TRUE(first.send(charge("k")));
  ASSERT_TRUE(upstream_->wait_for_requests(1));
  auto waiter = begun("k");
  finish(waiter);
  EXPECT_TRUE(is_problem(ask(with(charge("k"), "Prefer", "wait=0")), 409, "in_progress"));
  revoke();
  gate.open();
  EXPECT_EQ(first.read_response().body, "secret");
  expect_revoked(waiter.read_response());
}

TEST_F(Authorize, S06_over_tls_nobody_else_is_asked) {
  const auto folder = dir_.path() / "pki";
  Authority authority(folder, "own"), stranger(folder, "stranger");
  const auto files =
      authority.issue({.common_name = "authoriser", .other_names = {"IP:127.0.0.1"}});
  authoriser_ = std::make_unique<ScriptedUpstream>(
      &ScriptedUpstream::answer_all,
      ScriptedUpstream::Options{
          .tls = TlsSide{.certificate = files.certificate, .key = files.key, .alpn = "http/1.1"}});
  const std::string url = "https://" + authoriser_->address() + "/";
  start(&ScriptedUpstream::answer_all, {"--authorize-url", url, "--authorize-ca", stranger.file()});
  EXPECT_TRUE(is_problem(ask(charge("k")), 503, "store_unavailable"));
  EXPECT_EQ(authoriser_->requests(), 0) << "no credential was sent";
  start(&ScriptedUpstream::answer_all,
        {"--authorize-url", url, "--authorize-ca", authority.file()});
  EXPECT_EQ(ask(charge("k")).status, 200);
  EXPECT_EQ(authoriser_->requests(), 1);
}

TEST_F(Authorize, S06_invalid_settings_keep_the_gateway_from_starting) {
  const std::vector<std::vector<std::string>> wrong{
      {"--authorize-url", "127.0.0.1:1/x"},
      {"--authorize-url", "http://127.0.0.1:1"},
      {"--authorize-url", "http:///x"},
      {"--authorize-url", "http://u@127.0.0.1:1/x"},
      {"--authorize-url", "http://127.0.0.1:1/x#y"},
      {"--authorize-url", "http://127.0.0.1:1/x y"},
      {"--authorize-url", "http://127.0.0.1:1/x", "--authorize-cache", "61s"},
      {"--authorize-url", "http://127.0.0.1:1/x", "--authorize-timeout", "0s"},
      {"--authorize-url", "http://127.0.0.1:1/x", "--authorize-ca", "/nothing"},
      {"--authorize-ca", "/nothing"}};
  for (const auto& flags : wrong) {
    Gateway gateway({.upstream = unused_address(), .store = dir_.path() / "no.db", .flags = flags});
    EXPECT_FALSE(gateway.running());
    EXPECT_EQ(gateway.process().exit_code(), 2);
    EXPECT_TRUE(contains(gateway.process().output(), "--authorize-")) << gateway.process().output();
  }
}

}  // namespace
}  // namespace idem::test
