#include <filesystem>
#include <fstream>

#include "support/async.hpp"
#include "support/scripted_live.hpp"

/// NTLM and Negotiate log a connection in and not a request: the sender of the next request over it
/// would be its user.
namespace idem::test {
namespace {

/// As a server of Windows: the connection has a user from the first request with credentials on.
void windows(UpstreamConnection& connection) {
  std::string user = "nobody";
  while (const auto request = connection.read_request()) {
    const std::string credentials = find_field(request->head.fields, "Authorization").value_or("");
    if (credentials.find("alice") != std::string::npos) user = "alice";
    const auto challenge = find_field(request->head.fields, "X-Answer-With");
    const std::string status = user == "nobody" && challenge ? "401 Unauthorized" : "200 OK";
    connection.write("HTTP/1.1 " + status + "\r\n" + (challenge ? *challenge + "\r\n" : "") +
                     "Content-Length: " + std::to_string(user.size()) + "\r\n\r\n" + user);
    if (find_field(request->head.fields, "X-Then-Close")) return;
  }
}

Request get(std::vector<Field> fields = {}) {
  return {.method = "GET", .target = "/", .fields = std::move(fields)};
}

Request keyed(const std::string& key) {
  return {.method = "POST",
          .target = "/",
          .fields = {{"Idempotency-Key", key}, {"X-Tenant-Id", "acme"}},
          .body = "x"};
}

class ConnectionLogin : public Scripted {
 protected:
  /// The user of the next caller, who sends no credentials, keyed and not.
  void expect_nobody(const std::string& after) {
    EXPECT_EQ(ask(get()).body, "nobody") << after;
    EXPECT_EQ(ask(keyed("next-" + std::to_string(++keys_))).body, "nobody") << after;
  }
  int keys_ = 0;
};

TEST_F(ConnectionLogin, P23_is_never_the_next_callers) {
  start(windows);
  for (const auto* scheme : {"Negotiate", "NTLM", "negotiate", "Kerberos", "CredSSP"}) {
    const std::string credentials = std::string(scheme) + " alice";
    EXPECT_EQ(ask(get({{"Authorization", credentials}})).body, "alice");
    expect_nobody(credentials);
    EXPECT_EQ(ask(with(keyed(scheme), "Authorization", credentials)).body, "alice");
    expect_nobody(credentials);
  }
}

TEST_F(ConnectionLogin, P23_a_challenge_ends_the_connection) {
  start(windows);
  for (const auto* challenge :
       {"WWW-Authenticate: NTLM", "WWW-Authenticate: Basic realm=\"a, b\", Negotiate",
        "WWW-Authenticate: negotiate TlRMTVNTUAAC", "Persistent-Auth: true"}) {
    const int before = upstream_->connections();
    EXPECT_EQ(ask(get({{"X-Answer-With", challenge}})).status, 401);
    EXPECT_EQ(ask(get()).status, 200);
    EXPECT_EQ(upstream_->connections(), before + (before == 0 ? 2 : 1)) << challenge;
  }
}

TEST_F(ConnectionLogin, P23_credentials_of_a_request_keep_the_connection) {
  start(windows);
  for (const auto* credentials : {"Basic bm9ib2R5", "Bearer Negotiate", "Negotiates x"}) {
    EXPECT_EQ(ask(get({{"Authorization", credentials}})).body, "nobody");
  }
  EXPECT_EQ(ask(get({{"X-Answer-With", "WWW-Authenticate: Basic realm=\"NTLM\""}})).status, 401);
  EXPECT_EQ(ask(get({{"X-Answer-With", "Persistent-Auth: false"}})).status, 401);
  EXPECT_EQ(upstream_->connections(), 1);
}

class PinnedLogin : public ConnectionLogin {
 protected:
  void start_pinning(GatewayOptions options = {}) {
    start(windows, {"--pin-logins"}, std::move(options));
  }
  static Request logs_in(std::vector<Field> more = {}) {
    more.emplace_back("Authorization", "NTLM alice");
    return get(std::move(more));
  }
};

TEST_F(PinnedLogin, P23_is_kept_for_its_clients_connection_alone) {
  start_pinning();
  Connection alice(gateway_->address());
  Connection other(gateway_->address());
  EXPECT_EQ(other.exchange(get()).body, "nobody");
  EXPECT_EQ(alice.exchange(logs_in()).body, "alice");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(alice.exchange(get()).body, "alice");
    EXPECT_EQ(alice.exchange(keyed("hers-" + std::to_string(i))).body, "alice");
    EXPECT_EQ(other.exchange(get()).body, "nobody");
    EXPECT_EQ(other.exchange(keyed("others-" + std::to_string(i))).body, "nobody");
  }
  EXPECT_EQ(upstream_->connections(), 2);
  alice.socket().close();
  EXPECT_TRUE(upstream_->wait_for_finished(1)) << "it ends with its client's";
  expect_nobody("alice has left");
}

TEST_F(PinnedLogin, P23_one_that_is_gone_is_not_replaced_in_silence) {
  start_pinning();
  int finished = 0;
  for (const auto& next : {get(), keyed("k")}) {
    Connection alice(gateway_->address());
    EXPECT_EQ(alice.exchange(logs_in({{"X-Then-Close", "1"}})).body, "alice");
    ASSERT_TRUE(upstream_->wait_for_finished(++finished));
    const int requests = upstream_->requests();
    const auto answer = alice.exchange(next);
    EXPECT_EQ(answer.status, next.method == "GET" ? 502 : 503) << answer.raw;
    EXPECT_NE(answer.body.find("log in again"), std::string::npos) << answer.raw;
    EXPECT_EQ(answer.get("Connection"), "close");
    EXPECT_TRUE(alice.closed_by_peer());
    EXPECT_EQ(upstream_->requests(), requests);
  }
  EXPECT_EQ(ask(keyed("k")).body, "nobody") << "nothing ran under the key";
}

TEST_F(PinnedLogin, P23_no_connection_of_a_proxy_is_kept) {
  start_pinning();
  for (const Field& mark :
       {Field{"Via", "1.1 front"}, Field{"Forwarded", "for=192.0.2.1"},
        Field{"X-Forwarded-For", "192.0.2.1"}, Field{"X_Real_IP", "192.0.2.1"}}) {
    Connection proxy(gateway_->address());
    EXPECT_EQ(proxy.exchange(logs_in({mark})).body, "alice");
    EXPECT_EQ(proxy.exchange(get({mark})).body, "nobody") << mark.name;
    EXPECT_EQ(proxy.exchange(get()).body, "nobody") << mark.name;
    Connection alice(gateway_->address());
    EXPECT_EQ(alice.exchange(logs_in()).body, "alice");
    EXPECT_EQ(alice.exchange(get({mark})).body, "nobody") << "perhaps another client's";
  }
  GatewayOptions trusting;
  trusting.scope = {"--scope", "header:X-Tenant-Id", "--trusted-proxy", "127.0.0.1/32"};
  start_pinning(trusting);
  Connection proxy(gateway_->address());
  EXPECT_EQ(proxy.exchange(logs_in()).body, "alice");
  EXPECT_EQ(proxy.exchange(get()).body, "nobody");
}

TEST_F(PinnedLogin, P23_a_stored_request_logs_in_for_itself_alone) {
  const auto secret = dir_.path() / "async.secret";
  std::ofstream(secret) << std::string(48, 's');
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read);
  start(windows, {"--mode", "async", "--pin-logins", "--async-keep-header", "Authorization",
                  "--async-secret-file", secret.string()});
  const auto user_of = [&](const Request& request) {
    const auto state = state_when_ended(gateway_->address(), ask(request));
    return ask(looking_up(state["response"].string)).body;
  };
  for (const std::string round : {"1", "2"}) {
    EXPECT_EQ(user_of(with(keyed("a" + round), "Authorization", "Negotiate alice")), "alice");
    EXPECT_EQ(user_of(keyed("b" + round)), "nobody");
    EXPECT_EQ(user_of(keyed("c" + round)), "nobody");
  }
}

}  // namespace
}  // namespace idem::test
