#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <array>
#include <future>
#include <string>

#include "http/tls/tls.hpp"
#include "support/certificates.hpp"
#include "support/socket.hpp"
#include "support/temp_dir.hpp"

namespace idem::http {
namespace {

using Wants = TlsSession::Wants;

/// The server's side of a session, and a blocking client of another make at its other end.
class TlsSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    test::Authority authority(dir_.path() / "pki", "ca");
    const auto files =
        authority.issue({.common_name = "gateway", .other_names = {"DNS:localhost"}});
    auto context = TlsContext::for_server({.certificate = files.certificate, .key = files.key});
    ASSERT_TRUE(context.has_value()) << context.error();
    context_ = *context;
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    socket_ = ends[0];
    ours_ = test::Socket(ends[0]);
    client_ = test::Socket(ends[1]);
    session_ = TlsSession::accept(*context_, socket_);
    auto connected = std::async(std::launch::async, [&] {
      return client_.secure_as_client({.ca = authority.file(), .host = "localhost"});
    });
    for (auto wants = session_->handshake(); wants != Wants::nothing;) {
      ASSERT_TRUE(wants == Wants::readable || wants == Wants::writable) << session_->why();
      pollfd event{socket_, static_cast<short>(wants == Wants::readable ? POLLIN : POLLOUT), 0};
      ASSERT_EQ(::poll(&event, 1, 10'000), 1);
      wants = session_->handshake();
    }
    ASSERT_TRUE(connected.get());
  }

  int waiting() const {
    int bytes = 0;
    ::ioctl(socket_, FIONREAD, &bytes);
    return bytes;
  }
  void flood(std::string_view last) {
    const auto records = client_.tls()->behind_key_updates(3'000, last);
    ASSERT_EQ(::send(client_.fd(), records.data(), records.size(), MSG_NOSIGNAL | MSG_DONTWAIT),
              static_cast<ssize_t>(records.size()));
  }

  static constexpr int one_read = 32 * 1024;

  test::TempDir dir_;
  std::shared_ptr<const TlsContext> context_;
  int socket_ = -1;
  test::Socket ours_;
  test::Socket client_;
  std::unique_ptr<TlsSession> session_;
};

// Other connections of the loop wait as long as one call takes.
TEST_F(TlsSessionTest, a_flood_of_key_updates_is_read_in_portions) {
  ASSERT_NO_FATAL_FAILURE(flood("hello"));
  std::string read(16, '\0');
  int portions = 0;
  for (;;) {
    const int before = waiting();
    const auto moved = session_->read(read.data(), read.size());
    EXPECT_LE(before - waiting(), one_read);
    if (moved.bytes > 0) {
      EXPECT_EQ(read.substr(0, moved.bytes), "hello");
      break;
    }
    ASSERT_EQ(moved.wants, Wants::readable) << session_->why();
    ASSERT_GT(waiting(), 0) << "what was held back must wake its reader";
    ++portions;
  }
  EXPECT_GE(portions, 2);
}

TEST_F(TlsSessionTest, peek_reports_when_it_has_not_seen_all) {
  ASSERT_NO_FATAL_FAILURE(flood("hello"));
  while (waiting() > 0) {
    const int before = waiting();
    const auto wants = session_->peek();
    EXPECT_EQ(session_->held_back(), waiting() > 0);
    EXPECT_EQ(wants, waiting() > 0 ? Wants::readable : Wants::nothing);
    ASSERT_GT(before, waiting());
    EXPECT_LE(before - waiting(), one_read);
  }
  EXPECT_EQ(session_->peek(), Wants::nothing);
  std::string read(16, '\0');
  EXPECT_EQ(session_->read(read.data(), read.size()).bytes, 5u);
  EXPECT_EQ(session_->peek(), Wants::readable);
  EXPECT_FALSE(session_->held_back());
}

}  // namespace
}  // namespace idem::http
