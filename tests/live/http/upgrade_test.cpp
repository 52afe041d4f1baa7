#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "support/bulk.hpp"
#include "support/scripted_live.hpp"

namespace idem::test {
namespace {

constexpr const char* switched =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Accept: yes\r\n\r\n";

std::string offer(std::string_view protocols = "websocket") {
  return "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: " +
         std::string(protocols) + "\r\nSec-WebSocket-Key: k\r\n\r\n";
}

/// Upgrades of unkeyed requests are tunnelled, all others refused or ignored.
class Upgrades : public Scripted {
 protected:
  /// Reads a request's head from the wire; what follows it stays in the second part.
  static std::pair<std::string, std::string> read_head(Socket& socket) {
    std::string seen;
    if (!read_until(socket, seen, "\r\n\r\n")) return {};
    const auto end = seen.find("\r\n\r\n") + 4;
    return {seen.substr(0, end), seen.substr(end)};
  }
  /// Answers each request with 200 and what of its Upgrade arrived.
  static void echo_upgrade(UpstreamConnection& connection) {
    while (const auto request = connection.read_request()) {
      connection.write_answer(find_field(request->head.fields, "Upgrade").value_or("none") + "|" +
                              find_field(request->head.fields, "Connection").value_or("none"));
    }
  }
  Response raw(const std::string& bytes) {
    Connection client(gateway_->address());
    client.send_raw(bytes);
    return client.read_response();
  }
};

TEST_F(Upgrades, P28_bytes_go_both_ways_also_those_that_came_with_the_heads) {
  std::string head;
  std::string early;
  std::string before;
  ASSERT_NO_FATAL_FAILURE(start([&](UpstreamConnection& connection) {
    auto& socket = connection.socket();
    std::tie(head, before) = read_head(socket);
    connection.write(std::string(switched) + "hello from upstream;");
    if (!read_until(socket, early, "early;")) return;
    connection.write("got early;");
    std::string later;
    if (read_until(socket, later, "later;")) connection.write("got later;");
    std::string more;
    while (socket.receive(more) == Socket::Received::bytes) {
    }
  }));
  Connection client(gateway_->address());
  client.send_raw(offer() + "early;");
  std::string seen;
  ASSERT_TRUE(read_until(client.socket(), seen, "got early;"));
  EXPECT_TRUE(seen.starts_with("HTTP/1.1 101 Switching Protocols\r\n")) << seen;
  EXPECT_NE(seen.find("\r\nUpgrade: websocket\r\n"), std::string::npos) << seen;
  EXPECT_NE(seen.find("\r\nConnection: upgrade\r\n"), std::string::npos) << seen;
  EXPECT_NE(seen.find("\r\nSec-WebSocket-Accept: yes\r\n"), std::string::npos) << seen;
  EXPECT_EQ(seen.find("Content-Length"), std::string::npos) << seen;
  EXPECT_TRUE(seen.ends_with("\r\n\r\nhello from upstream;got early;")) << seen;
  client.send_raw("later;");
  EXPECT_TRUE(read_until(client.socket(), seen, "got later;"));
  EXPECT_NE(head.find("\r\nUpgrade: websocket\r\n"), std::string::npos) << head;
  EXPECT_NE(head.find("\r\nConnection: upgrade\r\n"), std::string::npos) << head;
  EXPECT_EQ(before, "") << "nothing is sent on before the upstream has agreed";
}

TEST_F(Upgrades, P28_one_sides_end_is_passed_on_and_the_other_way_goes_on) {
  ASSERT_NO_FATAL_FAILURE(start([&](UpstreamConnection& connection) {
    auto& socket = connection.socket();
    const auto [head, early] = read_head(socket);
    connection.write(switched);
    const bool upstream_first = head.find("/first") != std::string::npos;
    if (upstream_first) connection.half_close();
    std::string all;
    while (socket.receive(all) == Socket::Received::bytes) {
    }
    if (!upstream_first) connection.write("after the end: " + all);
  }));
  Connection client(gateway_->address());
  client.send_raw(offer());
  std::string seen;
  ASSERT_TRUE(read_until(client.socket(), seen, "\r\n\r\n"));
  client.send_raw("last words");
  client.socket().half_close();
  EXPECT_EQ(client.read_until_close(), "after the end: last words");

  Connection other(gateway_->address());
  auto request = offer();
  other.send_raw(request.replace(request.find("/chat"), 5, "/first"));
  seen.clear();
  while (other.socket().receive(seen) == Socket::Received::bytes) {
  }
  EXPECT_TRUE(seen.ends_with("\r\n\r\n")) << seen;
  EXPECT_TRUE(other.send_raw(std::string(200'000, 'x')));
  other.socket().half_close();
  EXPECT_TRUE(upstream_->wait_for_finished(2));
}

TEST_F(Upgrades, P28_much_goes_both_ways_at_once_in_constant_memory) {
  const std::uint64_t size = (sanitized ? 8 : 64) * mebibyte;
  bool intact = false;
  ASSERT_NO_FATAL_FAILURE(start([&](UpstreamConnection& connection) {
    const auto [head, early] = read_head(connection.socket());
    connection.write(switched);
    std::thread sender([&] { send_pattern(connection.socket(), size); });
    intact = receive_pattern(connection.socket(), early, size);
    sender.join();
  }));
  const auto pid = gateway_->process().pid();
  const auto before = anonymous_bytes(pid);
  Connection client(gateway_->address());
  client.send_raw(offer());
  const auto [head, early] = read_head(client.socket());
  std::thread sender([&] { send_pattern(client.socket(), size); });
  EXPECT_TRUE(receive_pattern(client.socket(), early, size));
  sender.join();
  if (!sanitized) {
    EXPECT_LT(anonymous_bytes(pid), before + 8 * mebibyte);
  }
  client.socket().close();
  EXPECT_TRUE(upstream_->wait_for_finished(1));
  EXPECT_TRUE(intact);
}

TEST_F(Upgrades, P28_of_a_keyed_request_is_refused_and_nothing_runs) {
  ASSERT_NO_FATAL_FAILURE(start(echo_upgrade));
  const auto keyed = with(with(charge("k"), "Connection", "Upgrade"), "Upgrade", "websocket");
  EXPECT_TRUE(is_problem(ask(keyed), 501, "not_implemented"));
  EXPECT_EQ(upstream_->requests(), 0);
  const auto run = ask(charge("k"));
  EXPECT_EQ(run.status, 200);
  EXPECT_FALSE(run.get("Idempotent-Replayed")) << "the refused one left no record";
  // Clients of the h2c kind offer an upgrade with every request; they do not ask for it.
  const auto h2c =
      with(with(charge("j"), "Connection", "Upgrade, HTTP2-Settings"), "Upgrade", "h2c");
  EXPECT_EQ(ask(h2c).body, "none|none");
}

TEST_F(Upgrades, P28_protocols_that_carry_requests_are_never_passed_on) {
  ASSERT_NO_FATAL_FAILURE(start(echo_upgrade));
  for (const auto* protocols : {"h2c", "H2C", "h2c-14", "HTTP/2.0", "TLS/1.0", "h2c, TLS/1.2",
                                "websocket/1/2", "\"websocket\"", "web socket"}) {
    EXPECT_EQ(raw(offer(protocols)).body, "none|none") << protocols;
  }
  EXPECT_EQ(raw(offer("h2c, websocket")).body, "websocket|upgrade");
  EXPECT_EQ(raw(offer("a/1,b")).body, "a/1, b|upgrade");
}

TEST_F(Upgrades, P28_only_with_its_connection_option_and_without_a_body) {
  ASSERT_NO_FATAL_FAILURE(start(echo_upgrade));
  EXPECT_EQ(raw("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n").body, "none|none");
  EXPECT_EQ(raw("PUT / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
                "Content-Length: 2\r\n\r\n{}")
                .body,
            "none|none");
}

TEST_F(Upgrades, P28_an_ordinary_answer_is_an_ordinary_answer) {
  ASSERT_NO_FATAL_FAILURE(start(echo_upgrade));
  Connection client(gateway_->address());
  client.send_raw(offer());
  EXPECT_EQ(client.read_response().body, "websocket|upgrade");
  EXPECT_EQ(client.exchange({.method = "GET", .target = "/"}).body, "none|none");
  EXPECT_EQ(upstream_->connections(), 1);
}

TEST_F(Upgrades, P28_an_agreement_to_something_else_is_refused) {
  const char* const answers[] = {
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n"};
  SharedText answer;
  ASSERT_NO_FATAL_FAILURE(start([&](UpstreamConnection& connection) {
    if (connection.read_request()) connection.write(answer.get());
  }));
  for (const auto* each : answers) {
    answer.set(each);
    EXPECT_TRUE(is_problem(raw(offer()), 502, "upstream_failed")) << each;
  }
  answer.set(switched);
  EXPECT_TRUE(is_problem(raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 502, "upstream_failed"))
      << "nobody had offered anything";
  EXPECT_TRUE(is_problem(ask(charge("k")), 502, "outcome_unknown"));
}

TEST_F(Upgrades, P28_connect_is_refused) {
  ASSERT_NO_FATAL_FAILURE(start(echo_upgrade));
  EXPECT_TRUE(
      is_problem(raw("CONNECT db:5432 HTTP/1.1\r\nHost: db:5432\r\n\r\n"), 501, "not_implemented"));
  EXPECT_EQ(upstream_->connections(), 0);
}

/// A tunnel that says nothing any more, and how it ends for the client.
class SilentTunnel : public Upgrades {
 protected:
  void open(std::vector<std::string> flags) {
    start(
        [this](UpstreamConnection& connection) {
          read_head(connection.socket());
          connection.write(switched);
          if (breaks_.wait()) connection.reset();
        },
        std::move(flags));
    if (HasFatalFailure()) return;
    client_ = std::make_unique<Connection>(gateway_->address());
    client_->send_raw(offer());
    std::string seen;
    ASSERT_TRUE(read_until(client_->socket(), seen, "\r\n\r\n"));
  }
  Socket::Received ending() {
    std::string nothing;
    return client_->socket().receive(nothing);
  }

  Gate breaks_;
  std::unique_ptr<Connection> client_;
};

TEST_F(SilentTunnel, P28_is_cut_after_its_idle_time) {
  ASSERT_NO_FATAL_FAILURE(open({"--tunnel-idle", "200ms"}));
  EXPECT_EQ(ending(), Socket::Received::reset) << "a cut, not an end";
  breaks_.open();
}

TEST_F(SilentTunnel, P28_is_cut_when_the_upstream_breaks) {
  ASSERT_NO_FATAL_FAILURE(open({}));
  breaks_.open();
  EXPECT_EQ(ending(), Socket::Received::reset) << "a cut, not an end";
}

TEST_F(SilentTunnel, P28_ends_at_sigterm) {
  ASSERT_NO_FATAL_FAILURE(open({}));
  EXPECT_EQ(gateway_->terminate(), 0) << "drained, not cut off by force";
  EXPECT_EQ(ending(), Socket::Received::reset);
  breaks_.open();
}

}  // namespace
}  // namespace idem::test
