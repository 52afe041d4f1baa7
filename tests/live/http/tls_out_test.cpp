#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "support/bulk.hpp"
#include "support/certificates.hpp"
#include "support/live.hpp"
#include "support/scripted_upstream.hpp"

/// TLS between gateway and upstream: whom it believes, and what a failure proves.
namespace idem::test {
namespace {

class TlsOut : public testing::Test {
 protected:
  void SetUp() override { IDEM_NEED_PROGRAM("idem"); }

  TlsSide server(const Authority::Holder& holder) {
    const auto files = authority_.issue(holder);
    return {.certificate = files.certificate, .key = files.key, .alpn = "http/1.1"};
  }
  TlsSide server() { return server({.common_name = "api", .other_names = {"IP:127.0.0.1"}}); }

  void start(const ScriptedUpstream& upstream, std::vector<std::string> flags = {}) {
    gateway_.reset();  // One store, one process.
    upstream_url_ = "https://" + upstream.address();
    if (flags.empty()) flags = {"--upstream-ca", authority_.file()};
    gateway_ = std::make_unique<Gateway>(GatewayOptions{
        .upstream = upstream_url_, .store = dir_.path() / "idem.db", .flags = flags});
    ASSERT_TRUE(gateway_->running());
  }
  Response ask(const Request& request) { return send_once(gateway_->address(), request); }

  TempDir dir_;
  Authority authority_{dir_.path() / "pki", "upstream-ca"};
  std::string upstream_url_;
  std::unique_ptr<Gateway> gateway_;
};

TEST_F(TlsOut, a_keyed_request_runs_once_and_its_connection_is_used_again) {
  ScriptedUpstream upstream(ScriptedUpstream::answer_all, {.tls = server()});
  start(upstream, {"--upstream-ca", authority_.file(), "--threads", "1"});
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(charge("k" + std::to_string(i))).status, 200);
  EXPECT_TRUE(replays(ask(charge("k0")), ask(charge("k0"))));
  EXPECT_EQ(upstream.requests(), 20);
  EXPECT_EQ(upstream.connections(), 1);
}

TEST_F(TlsOut, unkeyed_requests_pass_through) {
  ScriptedUpstream upstream(ScriptedUpstream::answer_all, {.tls = server()});
  start(upstream);
  EXPECT_EQ(ask({.method = "GET", .target = "/x"}).status, 200);
  Request large{.method = "PUT", .target = "/x", .body = std::string(300'000, 'x')};
  EXPECT_EQ(ask(large).status, 200);
}

TEST_F(TlsOut, S11_a_certificate_that_is_not_believed_proves_that_nothing_ran) {
  const Authority::Holder other_host{.common_name = "api", .other_names = {"IP:127.0.0.9"}};
  const Authority::Holder expired{
      .common_name = "api", .other_names = {"IP:127.0.0.1"}, .expired = true};
  for (const auto& holder : {other_host, expired}) {
    ScriptedUpstream upstream(ScriptedUpstream::answer_all, {.tls = server(holder)});
    start(upstream);
    const auto refused = ask(charge("k"));
    EXPECT_TRUE(is_problem(refused, 503, "upstream_unreachable")) << refused.raw;
    EXPECT_EQ(json_text(refused.body, "retry"), "same_key");
    EXPECT_EQ(upstream.requests(), 0);
    EXPECT_EQ(upstream.received().at(0), "");
  }
}

TEST_F(TlsOut, verification_is_on_unless_switched_off) {
  ScriptedUpstream upstream(ScriptedUpstream::answer_all, {.tls = server()});
  Authority stranger(dir_.path() / "pki", "stranger");
  start(upstream, {"--upstream-ca", stranger.file()});
  EXPECT_TRUE(is_problem(ask(charge("k")), 503, "upstream_unreachable"));
  start(upstream, {"--upstream-verify", "false"});
  EXPECT_EQ(ask(charge("k2")).status, 200);
}

TEST_F(TlsOut, S11_an_upstream_without_tls_proves_that_nothing_ran) {
  ScriptedUpstream upstream([](UpstreamConnection& connection) {
    connection.read_some();
    connection.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  });
  start(upstream);
  EXPECT_TRUE(is_problem(ask(charge("k")), 503, "upstream_unreachable"));
}

TEST_F(TlsOut, S11_a_handshake_that_never_ends_is_cut_off) {
  Gate end;
  ScriptedUpstream upstream([&](UpstreamConnection& connection) {
    connection.read_some();
    end.wait();
  });
  start(upstream, {"--upstream-ca", authority_.file(), "--connect-timeout", "200ms"});
  EXPECT_TRUE(is_problem(ask(charge("k")), 503, "upstream_unreachable"));
  end.open();
}

TEST_F(TlsOut, a_name_is_sent_as_sni_and_must_be_the_certificates) {
  SharedText seen;
  ScriptedUpstream upstream(
      [&](UpstreamConnection& connection) {
        seen.set(connection.tls()->sni() + " " + connection.tls()->alpn());
        ScriptedUpstream::answer_all(connection);
      },
      {.tls = server({.common_name = "api", .other_names = {"DNS:localhost"}})});
  start(upstream);
  EXPECT_TRUE(is_problem(ask(charge("k")), 503, "upstream_unreachable")) << "no name, no match";
  const auto port = upstream.address().substr(upstream.address().rfind(':'));
  gateway_ =
      std::make_unique<Gateway>(GatewayOptions{.upstream = "https://localhost" + port,
                                               .store = dir_.path() / "named.db",
                                               .flags = {"--upstream-ca", authority_.file()}});
  EXPECT_EQ(ask(charge("k")).status, 200);
  EXPECT_EQ(seen.get(), "localhost http/1.1");
}

/// An answer whose end is the connection's end, announced or not.
void answer_until_close(UpstreamConnection& connection, bool announced) {
  if (!connection.read_request()) return;
  connection.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nall of it");
  if (announced) connection.half_close();
}

TEST_F(TlsOut, S11_an_announced_end_makes_an_answer_complete) {
  ScriptedUpstream upstream([](UpstreamConnection& c) { answer_until_close(c, true); },
                            {.tls = server()});
  start(upstream);
  const auto first = ask(charge("k"));
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "all of it");
  EXPECT_TRUE(replays(first, ask(charge("k"))));
  EXPECT_EQ(upstream.requests(), 1);
}

TEST_F(TlsOut, S11_an_end_that_was_not_announced_is_a_cut) {
  ScriptedUpstream upstream([](UpstreamConnection& c) { answer_until_close(c, false); },
                            {.tls = server()});
  start(upstream);
  EXPECT_TRUE(is_problem(ask(charge("k")), 502, "outcome_unknown"));
  EXPECT_TRUE(is_problem(ask(charge("k")), 409, "outcome_unknown"));
  EXPECT_EQ(upstream.requests(), 1);
}

TEST_F(TlsOut, P24_a_connection_that_dies_after_the_request_is_unknown_and_never_sent_again) {
  ScriptedUpstream upstream([](UpstreamConnection& c) { c.read_request(); }, {.tls = server()});
  start(upstream);
  EXPECT_TRUE(is_problem(ask(charge("k")), 502, "outcome_unknown"));
  EXPECT_EQ(upstream.requests(), 1);
}

TEST_F(TlsOut, a_session_is_resumed_on_the_next_connection) {
  std::atomic<int> resumed{0};
  ScriptedUpstream upstream(
      [&](UpstreamConnection& connection) {
        if (connection.tls()->resumed()) ++resumed;
        ScriptedUpstream::answer_all(connection);
      },
      {.tls = server()});
  start(upstream, {"--upstream-ca", authority_.file(), "--threads", "1", "--keepalive-idle", "0s"});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask(charge("k" + std::to_string(i))).status, 200);
  EXPECT_EQ(upstream.connections(), 5);
  EXPECT_EQ(resumed, 4);
}

// An end that is not announced is a cut by our own rule, so ours must come through to slow readers.
TEST_F(TlsOut, P22_the_end_of_a_long_answer_is_announced_to_a_slow_reader_too) {
  const std::string part(2'000'000, 'p');
  ScriptedUpstream upstream(
      [&](UpstreamConnection& connection) {
        if (!connection.read_request()) return;
        connection.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + part);
        connection.half_close();
      },
      {.tls = server()});
  const auto own = authority_.issue({.common_name = "gateway", .other_names = {"DNS:localhost"}});
  start(upstream,
        {"--upstream-ca", authority_.file(), "--tls-cert", own.certificate, "--tls-key", own.key});
  auto socket = Socket::connect_with_small_window(gateway_->address(), "127.0.0.1");
  ASSERT_TRUE(socket.secure_as_client({.ca = authority_.file(), .host = "localhost"}));
  socket.send_all("GET / HTTP/1.0\r\nHost: a\r\n\r\n");
  std::string seen;
  auto last = Socket::Received::bytes;
  while (last == Socket::Received::bytes) last = socket.receive(seen);
  EXPECT_EQ(last, Socket::Received::end);
  EXPECT_TRUE(seen.ends_with(part.substr(0, 1'000'000)));
}

TEST_F(TlsOut, P28_a_tunnel_goes_through_tls_on_both_sides) {
  ScriptedUpstream upstream(
      [](UpstreamConnection& connection) {
        if (!connection.read_request()) return;
        connection.write(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n");
        auto& socket = connection.socket();
        std::string piece;
        while (socket.receive(piece) == Socket::Received::bytes) {
          connection.write(piece);
          piece.clear();
        }
        connection.write("end");
        connection.half_close();
      },
      {.tls = server()});
  const auto own = authority_.issue({.common_name = "gateway", .other_names = {"DNS:localhost"}});
  start(upstream,
        {"--upstream-ca", authority_.file(), "--tls-cert", own.certificate, "--tls-key", own.key});
  Connection client(gateway_->address(), {.ca = authority_.file(), .host = "localhost"});
  client.send_raw("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
  std::string head;
  while (head.find("\r\n\r\n") == std::string::npos) {
    ASSERT_EQ(client.socket().receive(head), Socket::Received::bytes);
  }
  std::string sent;
  std::string seen = head.substr(head.find("\r\n\r\n") + 4);
  for (int i = 0; i < 64; ++i) {
    const std::string piece(20'000, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(client.send_raw(piece));
    sent += piece;
    while (seen.size() < sent.size()) {
      ASSERT_EQ(client.socket().receive(seen), Socket::Received::bytes);
    }
  }
  EXPECT_TRUE(seen == sent);
  client.socket().half_close();
  EXPECT_EQ(client.read_until_close(), "end");
}

// Both ways blocked at once: a record that waits to be written, and others to be read, on one wire.
TEST_F(TlsOut, P28_much_goes_both_ways_at_once_through_tls) {
  const std::uint64_t size = (sanitized ? 2 : 16) * mebibyte;
  ScriptedUpstream upstream(
      [](UpstreamConnection& connection) {
        if (!connection.read_request()) return;
        connection.write(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n");
        std::string piece;
        while (connection.socket().receive(piece) == Socket::Received::bytes) {
          if (!connection.write(piece)) return;
          piece.clear();
        }
      },
      {.tls = server()});
  start(upstream);
  Connection client(gateway_->address());
  client.send_raw("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
  std::string seen;
  while (seen.find("\r\n\r\n") == std::string::npos) {
    ASSERT_EQ(client.socket().receive(seen), Socket::Received::bytes);
  }
  std::thread sender([&] { send_pattern(client.socket(), size); });
  EXPECT_TRUE(receive_pattern(client.socket(), seen.substr(seen.find("\r\n\r\n") + 4), size));
  sender.join();
}

// Tickets lie in front of the answer, and must not pass for it.
TEST_F(TlsOut, P25_a_large_keyed_request_is_sent_to_its_end_on_a_fresh_connection) {
  ScriptedUpstream upstream(ScriptedUpstream::answer_all, {.tls = server()});
  start(upstream, {"--upstream-ca", authority_.file(), "--request-body-max", "16MiB",
                   "--keepalive-idle", "0s"});
  for (int i = 0; i < 3; ++i) {
    const auto answer =
        ask(charge("k" + std::to_string(i), "", pattern_text((sanitized ? 4 : 12) * mebibyte)));
    EXPECT_EQ(answer.status, 200) << answer.raw;
  }
  EXPECT_EQ(upstream.requests(), 3);
}

TEST_F(TlsOut, an_idle_connection_that_was_closed_is_replaced) {
  ScriptedUpstream upstream(
      [](UpstreamConnection& connection) {
        if (connection.read_request()) connection.write_answer();
        connection.half_close();
      },
      {.tls = server()});
  start(upstream);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ask(charge("k" + std::to_string(i))).status, 200);
    ASSERT_TRUE(upstream.wait_for_finished(i + 1));
  }
  EXPECT_EQ(upstream.requests(), 20);
}

}  // namespace
}  // namespace idem::test
