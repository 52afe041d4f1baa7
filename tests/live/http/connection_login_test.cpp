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

}  // namespace
}  // namespace idem::test
