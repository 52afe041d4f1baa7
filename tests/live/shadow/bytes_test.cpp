#include <regex>

#include "support/scripted_live.hpp"

/// What passes in shadow is, byte for byte, what passes through a route that knows no keys.
namespace idem::test {
namespace {

/// Only the gateway's own name differs.
std::string masked(const std::string& bytes) {
  return std::regex_replace(bytes, std::regex("Via: 1\\.[01] [^\r]*"), "Via: masked");
}

struct Passed {
  std::string to_upstream;
  std::string to_client;
};

struct ShadowCase {
  const char* name;
  std::string head;  ///< Sent first; the body when the upstream, or a 100, lets it.
  std::string body{};
  std::string answer = "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok";
};

class ShadowBytes : public Scripted {
 protected:
  Passed pass(const ShadowCase& one, std::vector<std::string> flags) {
    start(
        [answer = one.answer](UpstreamConnection& connection) {
          if (connection.read_request()) connection.write(answer);
          connection.close();
        },
        std::move(flags));
    Connection client(gateway_->address());
    std::string answer;
    if (one.head.contains("Expect:")) {
      client.send_raw(one.head);
      EXPECT_TRUE(read_until(client.socket(), answer, "\r\n\r\n"));
      client.send_raw(one.body);
    } else {  // In one write, so that the pieces of a chunked body are the same each time.
      client.send_raw(one.head + one.body);
    }
    answer += client.read_until_close();
    std::string sent;
    for (const auto& bytes : upstream_->received()) sent += bytes;
    return {masked(sent), masked(answer)};
  }
};

const std::string keyed =
    "Host: api\r\nConnection: close\r\nX-Tenant-Id: acme\r\nIdempotency-Key: k\r\n"
    "Idem-Operation: mine\r\n";

std::vector<ShadowCase> shadow_cases() {
  return {
      {"length", "POST /pay?q=1 HTTP/1.1\r\n" + keyed + "Content-Length: 5\r\n\r\n", "hello"},
      {"chunked", "POST /pay HTTP/1.1\r\n" + keyed + "Transfer-Encoding: chunked\r\n\r\n",
       "5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nX-Trailer: t\r\n\r\n"},
      {"empty", "POST /pay HTTP/1.1\r\n" + keyed + "Content-Length: 0\r\n\r\n"},
      {"delete", "DELETE /pay/1 HTTP/1.1\r\n" + keyed + "\r\n", "",
       "HTTP/1.1 204 No Content\r\n\r\n"},
      {"head", "HEAD /pay HTTP/1.1\r\n" + keyed + "\r\n", "",
       "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n"},
      {"old", "POST /pay HTTP/1.0\r\n" + keyed + "Content-Length: 2\r\n\r\n", "hi"},
      {"answer_chunked", "POST /pay HTTP/1.1\r\n" + keyed + "Content-Length: 2\r\n\r\n", "hi",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n"},
      {"answer_until_close", "POST /pay HTTP/1.1\r\n" + keyed + "Content-Length: 2\r\n\r\n", "hi",
       "HTTP/1.1 200 OK\r\n\r\nuntil the end"},
      {"answer_ours", "POST /pay HTTP/1.1\r\n" + keyed + "Content-Length: 2\r\n\r\n", "hi",
       "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\nHTTP/1.1 500 Oops\r\nIdem-Outcome: store\r\n"
       "Retry-After: 3\r\nSet-Cookie: a=b\r\nContent-Length: 3\r\n\r\nbad"},
      {"answer_cut", "POST /pay HTTP/1.1\r\n" + keyed + "Content-Length: 2\r\n\r\n", "hi",
       "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nnot all"},
  };
}

/// The two may be answered in different seconds.
std::string without_date(std::string bytes) {
  const auto at = bytes.find("\r\nDate: ");
  if (at != std::string::npos) bytes.erase(at, bytes.find("\r\n", at + 2) - at);
  return bytes;
}

TEST_F(ShadowBytes, S22_P03_are_those_of_a_route_without_keys) {
  for (const ShadowCase& one : shadow_cases()) {
    SCOPED_TRACE(one.name);
    const Passed shadow = pass(one, {"--enforce", "shadow", "--key-forward", "strip"});
    const Passed plain = pass(one, {"--key-header", "X-No-Key", "--require-key", "false"});
    EXPECT_EQ(shadow.to_upstream, plain.to_upstream);
    EXPECT_EQ(without_date(shadow.to_client), without_date(plain.to_client));
    EXPECT_TRUE(shadow.to_upstream.contains("Idempotency-Key: k")) << shadow.to_upstream;
    EXPECT_FALSE(shadow.to_upstream.contains("Idem-")) << shadow.to_upstream;
    EXPECT_FALSE(shadow.to_client.contains("Idem-")) << shadow.to_client;
    EXPECT_FALSE(shadow.to_client.contains("Idempotency-")) << shadow.to_client;
  }
}

TEST_F(ShadowBytes, S22_P28_an_invitation_is_as_early_as_without_keys) {
  const ShadowCase one{
      "continue",
      "POST /pay HTTP/1.1\r\n" + keyed + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
      "hello"};
  const Passed shadow = pass(one, {"--enforce", "shadow"});
  const Passed plain = pass(one, {"--key-header", "X-No-Key", "--require-key", "false"});
  EXPECT_EQ(shadow.to_upstream, plain.to_upstream);
  EXPECT_EQ(without_date(shadow.to_client), without_date(plain.to_client));
  EXPECT_TRUE(shadow.to_client.starts_with("HTTP/1.1 100 ")) << shadow.to_client;
}

}  // namespace
}  // namespace idem::test
