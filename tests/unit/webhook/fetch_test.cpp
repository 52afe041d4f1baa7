#include "support/black_hole.hpp"
#include "support/cutting_proxy.hpp"
#include "support/scripted_upstream.hpp"
#include "support/temp_dir.hpp"

#include "webhook/fetch.hpp"

#include <idem/worker_limits.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

namespace idem::test {
namespace {

using FetchKind = FetchError::Kind;

FetchRequest request_to(const ScriptedUpstream& upstream, const std::string& target = "/list") {
  return {.url = "http://" + upstream.address() + target, .allowed_hosts = {upstream.address()}};
}

void expect_refused(FetchRequest request) {
  const auto answer = Fetcher().fetch(request);
  ASSERT_FALSE(answer) << request.url;
  EXPECT_EQ(answer.error().kind, FetchKind::refused_by_rule) << request.url << answer.error().why;
  EXPECT_FALSE(answer.error().sent);
}

ScriptedUpstream::Script answering(std::string bytes) {
  return [bytes = std::move(bytes)](UpstreamConnection& connection) {
    (void)connection.read_request();
    connection.write(bytes);
  };
}

TEST(Fetch, sends_the_given_request_and_returns_the_answer) {
  ScriptedUpstream upstream(
      answering("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                "HTTP/1.1 201 Created\r\nLocation:  /x \r\nContent-Length: 2\r\n\r\nok"));
  FetchRequest request = request_to(upstream);
  request.method = "POST";
  request.body = "{}";
  request.headers = {{"Authorization", "Bearer t"}, {"X-Empty", ""}};
  const auto answer = Fetcher().fetch(request);
  ASSERT_TRUE(answer) << answer.error().why;
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->body, "ok");
  EXPECT_EQ(answer->header("location"), "/x");
  EXPECT_EQ(answer->header("link"), "") << "an interim answer's";
  const std::string seen = upstream.received().at(0);
  EXPECT_TRUE(seen.starts_with("POST /list HTTP/1.1\r\n")) << seen;
  EXPECT_NE(seen.find("Authorization: Bearer t\r\n"), seen.npos) << seen;
  EXPECT_NE(seen.find("X-Empty:"), seen.npos) << seen;
  EXPECT_EQ(seen.find("Expect"), seen.npos) << seen;
  EXPECT_EQ(seen.find("Content-Type"), seen.npos) << seen;
  EXPECT_TRUE(seen.ends_with("\r\n\r\n{}")) << seen;
}

TEST(Fetch, asks_no_host_that_is_not_allowed) {
  ScriptedUpstream upstream(ScriptedUpstream::answer_all);
  const std::string& address = upstream.address();
  FetchRequest request = request_to(upstream);
  request.allowed_hosts = {};
  expect_refused(request);
  request.allowed_hosts = {"127.0.0.1"};  // Of port 80.
  expect_refused(request);
  request.allowed_hosts = {address};
  request.url = "http://" + address + "@127.0.0.2/";
  expect_refused(request);
  request.url = "http://user:secret@" + address + "/";
  expect_refused(request);
  request.url = "http://127.0.0.2" + address.substr(address.find(':')) + "/";
  expect_refused(request);
  for (const auto* url : {"file:///etc/passwd", "ftp://127.0.0.1/", "gopher://x/", "//x/", ""}) {
    request.url = url;
    expect_refused(request);
  }
  request = request_to(upstream);
  request.headers = {{"X", "a\r\nInjected: b"}};
  expect_refused(request);
  request.headers = {{"X: y\r\nInjected", "b"}};
  expect_refused(request);
  request = request_to(upstream);
  request.method = "GET / HTTP/1.1\r\n";
  expect_refused(request);
  EXPECT_EQ(upstream.connections(), 0);
}

TEST(Fetch, hosts_are_compared_as_the_connection_reads_them) {
  EXPECT_EQ(fetch_host_of("http://Example.COM/a?b"), "example.com:80");
  EXPECT_EQ(fetch_host_of("https://example.com"), "example.com:443");
  EXPECT_EQ(fetch_host_of("https://example.com:8443/x"), "example.com:8443");
  EXPECT_EQ(fetch_host_of("http://[::1]:9/x"), "[::1]:9");
  EXPECT_FALSE(fetch_host_of("http://a:b@example.com/"));
  EXPECT_FALSE(fetch_host_of("example.com"));
}

TEST(Fetch, a_redirect_is_the_answer) {
  ScriptedUpstream elsewhere(ScriptedUpstream::answer_all);
  ScriptedUpstream upstream(answering("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://" +
                                      elsewhere.address() + "/\r\nContent-Length: 0\r\n\r\n"));
  FetchRequest request = request_to(upstream);
  request.allowed_hosts.push_back(elsewhere.address());
  const auto answer = Fetcher().fetch(request);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 307);
  EXPECT_EQ(elsewhere.connections(), 0);
}

TEST(Fetch, reports_whether_anything_was_sent) {
  std::string gone;
  {
    ScriptedUpstream upstream(ScriptedUpstream::answer_all);
    gone = upstream.address();
  }
  const auto refused = Fetcher().fetch({.url = "http://" + gone + "/", .allowed_hosts = {gone}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, FetchKind::connect);
  EXPECT_FALSE(refused.error().sent);

  ScriptedUpstream closing([](UpstreamConnection& connection) { (void)connection.read_request(); });
  const auto lost = Fetcher().fetch(request_to(closing));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().kind, FetchKind::protocol);
  EXPECT_TRUE(lost.error().sent);
  EXPECT_EQ(lost.error().head.status, 0);
  EXPECT_EQ(closing.requests(), 1) << "sent once more";

  Gate gate;
  ScriptedUpstream silent([&](UpstreamConnection& connection) {
    (void)connection.read_request();
    gate.wait();
  });
  FetchRequest request = request_to(silent);
  request.timeout = Millis{50};
  const auto late = Fetcher().fetch(request);
  gate.open();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, FetchKind::timeout);
  EXPECT_TRUE(late.error().sent);
}

TEST(Fetch, reads_no_more_than_its_limit) {
  ScriptedUpstream upstream(answering("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world"));
  FetchRequest request = request_to(upstream);
  request.max_bytes = 10;
  const auto answer = Fetcher().fetch(request);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, FetchKind::too_large);
  EXPECT_EQ(answer.error().head.status, 200);
  ScriptedUpstream again(answering("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world"));
  request = request_to(again);
  request.max_bytes = 11;
  EXPECT_TRUE(Fetcher().fetch(request));

  ScriptedUpstream heads(
      answering("HTTP/1.1 200 OK\r\nX: " + std::string(limits::fetch_head_bytes_max, 'x') +
                "\r\nContent-Length: 0\r\n\r\n"));
  const auto head = Fetcher().fetch(request_to(heads));
  ASSERT_FALSE(head);
  EXPECT_EQ(head.error().kind, FetchKind::too_large);
  EXPECT_EQ(head.error().head.status, 0);
}

TEST(Fetch, a_cut_body_is_no_answer) {
  ScriptedUpstream upstream(answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"));
  const auto answer = Fetcher().fetch(request_to(upstream));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, FetchKind::protocol);
  EXPECT_EQ(answer.error().head.status, 200);
}

TEST(Fetch, one_object_asks_many_times_with_nothing_left_of_the_one_before) {
  ScriptedUpstream upstream(ScriptedUpstream::answer_all);
  Fetcher fetcher;
  FetchRequest first = request_to(upstream);
  first.method = "POST";
  first.body = "secret";
  first.headers = {{"X-First", "1"}};
  ASSERT_TRUE(fetcher.fetch(first));
  ASSERT_TRUE(fetcher.fetch(request_to(upstream)));
  ASSERT_TRUE(upstream.wait_for_requests(2));
  EXPECT_EQ(upstream.connections(), 2);
  const std::string second = upstream.received().at(1);
  EXPECT_TRUE(second.starts_with("GET /list")) << second;
  EXPECT_EQ(second.find("X-First"), second.npos);
  EXPECT_EQ(second.find("secret"), second.npos);
}

// libcurl 7.88 gives the first address the whole of such a timeout.
TEST(Fetch, a_silent_address_of_a_name_leaves_time_for_the_next) {
  ScriptedUpstream upstream(answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
  const CuttingProxy there(upstream.address(), "127.0.0.3");
  const BlackHole hole("127.0.0.2", there.port());
  ASSERT_TRUE(hole.is_black());
  const TempDir dir;
  const auto hosts = dir.path() / "hosts";
  std::ofstream(hosts) << "127.0.0.2 provider.test\n127.0.0.3 provider.test\n"
                       << "127.0.0.3 single.test\n"
                       << "127.0.0.2 silent.test\n127.0.0.2 silent.test\n"
                       << "127.0.0.5 closed.test\n127.0.0.6 closed.test\n";
  const std::string port = ':' + std::to_string(there.port());
  const auto fetch = [&](const std::string& name, Millis timeout) {
    return Fetcher().fetch({.method = "POST",
                            .url = "http://" + name + port + "/",
                            .body = "{}",
                            .timeout = timeout,
                            .allowed_hosts = {name + port}});
  };
  const auto work = [&] {
    for (const std::string name : {"provider.test", "single.test"}) {
      const auto answer = fetch(name, Millis(2'000));
      ASSERT_TRUE(answer) << name << ": " << answer.error().why;
      EXPECT_EQ(answer->body, "ok");
      const std::string seen = upstream.received().back();
      EXPECT_NE(seen.find("\r\nHost: " + name + port + "\r\n"), seen.npos) << seen;
    }
    EXPECT_EQ(upstream.received().size(), 2U) << "each was sent once";
    const auto refused = fetch("closed.test", Millis(10'000));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, FetchKind::connect);
    EXPECT_FALSE(refused.error().sent);
    const auto late = fetch("silent.test", Millis(300));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().kind, FetchKind::timeout);
    EXPECT_FALSE(late.error().sent);
    const auto unknown = fetch("nobody.invalid", Millis(30'000));
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().kind, FetchKind::connect);
  };
  if (!run_with_hosts(hosts, work)) GTEST_SKIP() << "only root may have its own /etc/hosts";
}

}  // namespace
}  // namespace idem::test
